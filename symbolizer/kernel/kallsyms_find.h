/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kallsyms_find: finds a kernel's own names, and decodes them.
 *
 * It finds the token table, markers, names and their number by their form (described in
 * kallsyms.h) and checks them against each other. It does not look for the addresses. Borrowed
 * bytes, no allocation, no I/O; all offsets are into the bytes of one range. Any thread.
 */
#ifndef KVMPROF_SYMBOLIZER_KERNEL_KALLSYMS_FIND_H
#define KVMPROF_SYMBOLIZER_KERNEL_KALLSYMS_FIND_H

#include "base/cursor.h"
#include "symbolizer/kernel/kallsyms.h"

#define KALLSYMS_TOKENS 256u

struct kallsyms_tables {
	struct cursor mem; /* bytes of the range */
	uint64_t va;	   /* address of the first byte */
	uint64_t token_table, token_index, names, names_end, markers;
	uint32_t count; /* number of symbols */
	unsigned int nmarkers, marker_size;
	bool seqs_before_tokens;	     /* order of 6.2 and 6.3 */
	bool byte_lengths;		     /* all lengths have one byte: before 6.1 */
	unsigned int long_names;	     /* number of two-byte lengths seen */
	uint32_t token_off[KALLSYMS_TOKENS]; /* offset in mem */
	uint16_t token_len[KALLSYMS_TOKENS];
};

/* Limit of a search over all ranges, and the best reason why nothing was found. */
struct kallsyms_search {
	uint64_t steps_left;
	unsigned int token_tables; /* number seen so far */
	char why[160];		   /* "" until a token table is found */
};

/* Initialises a search with its full limit. */
void kallsyms_search_init(struct kallsyms_search *s);

/*
 * Finds all sets of tables in one range and stores up to max of them in out. Returns their number,
 * or -E2BIG if the search costs more than any real kernel requires.
 */
int kallsyms_find(const struct kallsyms_range *r, struct kallsyms_search *s,
		  struct kallsyms_tables *out, unsigned int max);

/*
 * Decodes the name at *off, and advances *off. Stores its type letter, and the rest with a NUL in
 * buf, which has KALLSYMS_MAX_NAME + 1 bytes or is NULL. Returns false if it is not a valid name.
 */
bool kallsyms_next_name(const struct kallsyms_tables *t, uint64_t *off, char *type, char *buf);

/* Return the number at an offset; 0 beyond the bytes. */
static inline uint32_t kallsyms_u32(const struct cursor *m, uint64_t off)
{
	struct cursor c = cursor_window(m, off, sizeof(uint32_t));

	return cursor_u32(&c);
}

static inline uint64_t kallsyms_u64(const struct cursor *m, uint64_t off)
{
	struct cursor c = cursor_window(m, off, sizeof(uint64_t));

	return cursor_u64(&c);
}

static inline uint64_t kallsyms_align(uint64_t off, uint64_t to)
{
	return (off + to - 1) & ~(to - 1);
}

#endif

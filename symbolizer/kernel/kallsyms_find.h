/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kallsyms_find: where a kernel's own names lie, and how to spell them.
 *
 * Finds token table, markers, names and their number by what they look like (the
 * format is in kallsyms.h) and checks them against each other. Where the
 * addresses are is not asked here. Borrowed bytes, no I/O; all offsets are into
 * the bytes of one range.
 */
#ifndef KVMPROF_SYMBOLIZER_KERNEL_KALLSYMS_FIND_H
#define KVMPROF_SYMBOLIZER_KERNEL_KALLSYMS_FIND_H

#include "base/cursor.h"
#include "symbolizer/kernel/kallsyms.h"

#define KALLSYMS_TOKENS 256u

struct kallsyms_tables {
	struct cursor mem; /* the range's bytes */
	uint64_t va;	   /* of the first of them */
	uint64_t token_table, token_index, names, names_end, markers;
	uint32_t count; /* symbols */
	unsigned int nmarkers, marker_size;
	bool seqs_before_tokens;	     /* the order of 6.2 and 6.3 */
	bool byte_lengths;		     /* all lengths are one byte: before 6.1 */
	unsigned int long_names;	     /* two-byte lengths that were seen */
	uint32_t token_off[KALLSYMS_TOKENS]; /* into mem */
	uint16_t token_len[KALLSYMS_TOKENS];
};

/* What a search may cost over all ranges, and the best reason why nothing was found. */
struct kallsyms_search {
	uint64_t steps_left;
	unsigned int token_tables; /* seen so far */
	char why[160];		   /* "" as long as there is no token table */
};

void kallsyms_search_init(struct kallsyms_search *s);

/*
 * All sets of tables in one range: up to max of them into out. Returns how many,
 * or -E2BIG when the search costs more than any real kernel's would.
 */
int kallsyms_find(const struct kallsyms_range *r, struct kallsyms_search *s,
		  struct kallsyms_tables *out, unsigned int max);

/*
 * The name at *off, which moves to the next: its type letter and the rest with a
 * NUL, or false when it isn't one. buf has KALLSYMS_MAX_NAME + 1 bytes; NULL: the
 * type alone.
 */
bool kallsyms_next_name(const struct kallsyms_tables *t, uint64_t *off, char *type, char *buf);

/* Numbers at an offset; 0 beyond the bytes. */
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

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kallsyms: decodes the symbol names that a Linux kernel contains for its own use, from its
 * read-only data alone: without a symbol table, a version string, or help from the guest.
 *
 * The tables in memory are each aligned to 8 bytes (4 since Linux 7.0). Numbers are little endian;
 * n is the number of symbols.
 *
 *	old order (up to 6.3)		new order (6.4 and later)
 *	  addresses			  num_syms
 *	  num_syms			  names
 *	  names				  markers
 *	  markers			  token_table
 *	  seqs_of_names (6.2, 6.3; 1)	  token_index
 *	  token_table			  addresses
 *	  token_index			  seqs_of_names
 *
 * (1) and in later releases of the stable series 6.1, by backport; for this reason no version
 * number is used.
 *
 *	num_syms	n: 8 bytes, 4 since 4.20
 *	names		n times: length, then that many token numbers of a byte each; they
 *			spell nm's type letter and the name. The length is one byte; since
 *			6.1 its top bit says that a second byte with 7 more bits follows
 *	markers		offset in names of every 256th symbol: 8 bytes each, 4 since 4.20
 *	token_table	256 strings, each ended by NUL; a character that occurs in names
 *			is its own token, the other numbers stand for frequent pairs
 *	token_index	offset in token_table of each: 256 of 2 bytes
 *	seqs_of_names	3 bytes for each symbol: not used here
 *	addresses	one of enum kallsyms_encoding, in rising order
 *
 * Source: scripts/kallsyms.c and kernel/kallsyms.c with these changes:
 * "kallsyms: add support for relative offsets in kallsyms address table" (4.6),
 * "kallsyms: reduce size a little on 64-bit" (4.20),
 * "kallsyms: support "big" kernel symbols" (6.1),
 * "kallsyms: Improve the performance of kallsyms_lookup_name()" (6.2),
 * "scripts/kallsyms: change the output order" (6.4),
 * "kallsyms: Remove KALLSYMS_ABSOLUTE_PERCPU" (6.15),
 * "kallsyms: Get rid of kallsyms relative base" (7.0).
 */
#ifndef KVMPROF_SYMBOLIZER_KERNEL_KALLSYMS_H
#define KVMPROF_SYMBOLIZER_KERNEL_KALLSYMS_H

#include "base/err.h"
#include "symbolizer/core/kimage.h"
#include "symbolizer/core/symtab.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A typical kernel has some 150,000 symbols; an all-yes one 1.5 million. */
#define KALLSYMS_MAX_SYMBOLS (4u << 20)
/* Bytes of a name: the type letter and KSYM_NAME_LEN (512) of Linux. */
#define KALLSYMS_MAX_NAME 513u

/*
 * Bytes at address va in the guest. They are borrowed and must not change during the call: live
 * guest memory is copied first. The tables must be in one range, so the caller joins adjacent
 * pieces.
 */
struct kallsyms_range {
	uint64_t va; /* multiple of 8 */
	const uint8_t *bytes;
	size_t len;
};

enum kallsyms_encoding {
	KALLSYMS_ABSOLUTE = 1, /* 8 bytes each: the address */
	KALLSYMS_RELATIVE,     /* unsigned 4 bytes each: distance from the base that follows them */
	/*
	 * Signed 4 bytes each: a negative number is -1 - distance from the base, others are the
	 * value itself. Used by x86 SMP before 6.15, whose per-CPU variables are linked at 0.
	 */
	KALLSYMS_PERCPU,
	KALLSYMS_PLACE, /* signed 4 bytes each: distance from the entry's own address */
};

/* Facts about the tables that were found, for messages. */
struct kallsyms_info {
	enum kallsyms_encoding encoding;
	bool addresses_first;	 /* order up to 6.3 */
	unsigned int long_names; /* number of names with a two-byte length */
	uint32_t count;		 /* number of symbols in the tables */
	uint64_t names_va, token_va, addresses_va;
	char layout[128]; /* all of it in words */
};

/*
 * The input of a search. text and end: the known extent of the kernel. If they are 0, that of the image or else the ranges'
 * extent is used instead, and linux_banner must be found at its symbol's address.
 */
struct kallsyms_source {
	const struct kallsyms_range *range;
	unsigned int nrange;
	uint64_t text, end;
	const char *name; /* for messages */
	/* Where addresses may lie of which the ranges are only a part; 0: not given. */
	uint64_t image_start, image_end;
	/* Reads bytes that are in no range. Returns false if it cannot. NULL: nothing else is read. */
	bool (*read)(void *ctx, uint64_t va, void *dst, size_t len);
	void *ctx;
};

/*
 * Finds and decodes the tables. Returns 0; -ENOENT if there are none; -EBADMSG with details in *e
 * if something similar contradicts itself or the image, or can be read in two ways; or another
 * -errno. The result is never a guess. The caller frees *out, a frozen table, with
 * symtab_destroy(); info may be NULL. Any thread.
 */
int kallsyms_decode(const struct kallsyms_source *source, struct symtab **out,
		    struct kallsyms_info *info, struct err *e);

/* Does the same for an image, using the facts in *k. */
int kallsyms_from_image(const struct kimage *k, const char *name, struct symtab **out,
			struct kallsyms_info *info, struct err *e);

#endif

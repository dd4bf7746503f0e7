/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cfi_table: the call frame information of one file, and the lookup of an address in it.
 *
 *	.eh_frame_hdr	version 1, three encodings, address of .eh_frame, count, then a table
 *			(address of code, address of its FDE), sorted: LSB Core 5.0, 10.6.2
 *	.eh_frame	CIEs and FDEs: a length (0: the end; 0xffffffff: 8 more bytes have it),
 *			then 0 for a CIE, for an FDE the distance back to its CIE
 *	.debug_frame	the same with 0xffffffff for a CIE and its offset for an FDE: DWARF 5, 6.4.1
 *
 * Addresses are the file's own virtual addresses; in a .debug_frame, which is not mapped, they are
 * relative to the section's begin. Bytes are read when an address is looked up, a few at a time,
 * because pages of a guest's file may be missing.
 *
 * The table copies its cfi_source; what that refers to is borrowed. One thread at a time per
 * table.
 */
#ifndef KVMPROF_SYMBOLIZER_CFI_CFI_TABLE_H
#define KVMPROF_SYMBOLIZER_CFI_CFI_TABLE_H

#include "symbolizer/cfi/cfi.h"

#include <stddef.h>

#define CFI_MAX_ENTRY 65536u	    /* bytes of one CIE or FDE; cc1 has one of 20,000 */
#define CFI_MAX_LISTED (1u << 24)   /* FDEs in the table of a header */
#define CFI_MAX_INDEXED (1u << 19)  /* FDEs of a section without a header */
#define CFI_MAX_SECTION (64u << 20) /* bytes of a section without a header */

struct cfi_source {
	/*
	 * Copies up to len bytes from va to dst. Returns how many are available before the first
	 * missing one.
	 */
	size_t (*read)(void *ctx, uint64_t va, void *dst, size_t len);
	void *ctx;
};

enum cfi_kind { CFI_EH_FRAME, CFI_DEBUG_FRAME };

struct cfi_span; /* element of the index */

struct cfi_table {
	struct cfi_source src;
	enum cfi_kind kind;
	uint64_t hdr_va, list_va; /* list_va 0: `index` is used instead */
	uint32_t count;
	uint8_t width;		/* bytes of a number in the list: 4 or 8 */
	struct cfi_span *index; /* owned; sorted by address */
	size_t n;
};

/* The result of a lookup. */
enum cfi_found {
	CFI_FOUND,
	CFI_NONE, /* nothing describes this address */
	CFI_HOLE, /* bytes are missing: a later lookup may find it */
	CFI_BAD,  /* damaged, beyond a limit, or in an unsupported form */
	CFI_FOUND_COUNT
};

/*
 * Opens a table by its .eh_frame_hdr of len bytes at va. Returns CFI_FOUND with *t set; CFI_NONE
 * if it has no sorted table, with the address of .eh_frame in *frame_va (0: unknown); CFI_HOLE; or
 * CFI_BAD. The caller frees *t with cfi_table_deinit().
 */
enum cfi_found cfi_table_by_header(struct cfi_table *t, const struct cfi_source *src, uint64_t va,
				   uint64_t len, uint64_t *frame_va);
/* A section without a header. */
struct cfi_section {
	struct cfi_source src;
	enum cfi_kind kind;
	uint64_t va, len;
};
/*
 * Opens a table by reading a whole section and indexing its FDEs. Returns CFI_FOUND with *t set,
 * CFI_HOLE, or CFI_BAD (also if out of memory). The caller frees *t with cfi_table_deinit().
 */
enum cfi_found cfi_table_by_section(struct cfi_table *t, const struct cfi_section *s);
/* Frees the index. */
void cfi_table_deinit(struct cfi_table *t);

/*
 * Stores in *end the end of the code that the FDE of va describes (the address after its last
 * byte). *end is written for CFI_FOUND only.
 */
enum cfi_found cfi_table_end(const struct cfi_table *t, uint64_t va, uint64_t *end);

/*
 * Computes the rules for the instruction at va. *row is written for CFI_FOUND only, and then all
 * its bytes are, so that rows can be compared bytewise.
 */
enum cfi_found cfi_table_row(const struct cfi_table *t, uint64_t va, struct cfi_row *row);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cfi_table: the call frame information of one file, and the row of an address in it.
 *
 *	.eh_frame_hdr	version 1, three encodings, address of .eh_frame, count, then a table
 *			(address of code, address of its FDE), sorted: LSB Core 5.0, 10.6.2
 *	.eh_frame	CIEs and FDEs: a length (0: the end; 0xffffffff: 8 more bytes have it),
 *			then 0 for a CIE, for an FDE the distance back to its CIE
 *	.debug_frame	the same with 0xffffffff for a CIE and its offset for an FDE: DWARF 5, 6.4.1
 *
 * Addresses are the file's own virtual addresses; what lies in a .debug_frame, which is
 * not mapped, counts from the section's begin. Bytes are asked for when an address is
 * looked up, and a few at a time, as pages of a guest's file may be missing.
 *
 * The source is borrowed. One thread at a time for one table.
 */
#ifndef KVMPROF_SYMBOLIZER_CFI_CFI_TABLE_H
#define KVMPROF_SYMBOLIZER_CFI_CFI_TABLE_H

#include "symbolizer/cfi/cfi.h"

#include <stddef.h>

#define CFI_MAX_ENTRY 65536u	    /* bytes of one CIE or FDE; cc1 has one of 20,000 */
#define CFI_MAX_LISTED (1u << 24)   /* FDEs that a header lists */
#define CFI_MAX_INDEXED (1u << 19)  /* FDEs of a section without one */
#define CFI_MAX_SECTION (64u << 20) /* bytes of such a section */

struct cfi_source {
	/* Copies up to len bytes from va on; returns how many are there before the first missing one. */
	size_t (*read)(void *ctx, uint64_t va, void *dst, size_t len);
	void *ctx;
};

enum cfi_kind { CFI_EH_FRAME, CFI_DEBUG_FRAME };

struct cfi_span; /* of the index */

struct cfi_table {
	struct cfi_source src;
	enum cfi_kind kind;
	uint64_t hdr_va, list_va; /* list_va 0: there is an index instead */
	uint32_t count;
	uint8_t width;		/* of a number of the list: 4 or 8 */
	struct cfi_span *index; /* owned; sorted */
	size_t n;
};

enum cfi_found {
	CFI_FOUND,
	CFI_NONE, /* nothing describes this address */
	CFI_HOLE, /* bytes are missing: it may be found when they are there */
	CFI_BAD,  /* damaged, over a cap, or of a form that is not known here */
	CFI_FOUND_COUNT
};

/*
 * By .eh_frame_hdr, len bytes at va. CFI_NONE: it has no sorted table; then
 * *frame_va is where .eh_frame begins (0: not told). t is set for CFI_FOUND alone.
 */
enum cfi_found cfi_table_by_header(struct cfi_table *t, const struct cfi_source *src, uint64_t va,
				   uint64_t len, uint64_t *frame_va);
/* By a section without a header, read from begin to end now. -ENOMEM is CFI_BAD. */
struct cfi_section {
	struct cfi_source src;
	enum cfi_kind kind;
	uint64_t va, len;
};
enum cfi_found cfi_table_by_section(struct cfi_table *t, const struct cfi_section *s);
void cfi_table_deinit(struct cfi_table *t);

/* Stores the end of the FDE that describes va in *end: the address behind its last byte. Written for CFI_FOUND alone. */
enum cfi_found cfi_table_end(const struct cfi_table *t, uint64_t va, uint64_t *end);

/* The rules for the instruction at va. row is set for CFI_FOUND alone; all its bytes are. */
enum cfi_found cfi_table_row(const struct cfi_table *t, uint64_t va, struct cfi_row *row);

#endif

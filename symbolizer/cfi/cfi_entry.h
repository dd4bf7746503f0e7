/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cfi_entry: parses one FDE with its CIE; cfi_table.h describes the formats. Only for files in
 * this folder. No allocation; any thread.
 */
#ifndef KVMPROF_SYMBOLIZER_CFI_CFI_ENTRY_H
#define KVMPROF_SYMBOLIZER_CFI_CFI_ENTRY_H

#include "symbolizer/cfi/cfi_leb.h"
#include "symbolizer/cfi/cfi_table.h"

#define CFI_MAX_CIE 1024u

/* Encodings of pointers: LSB Core 5.0, 10.5.1. */
enum {
	CFI_PE_OMIT = 0xff,
	CFI_PE_PCREL = 0x10,
	CFI_PE_DATAREL = 0x30,
	CFI_PE_APPLICATION = 0x70,
	CFI_PE_INDIRECT = 0x80,
};

struct cfi_cie {
	uint64_t code_align;
	int64_t data_align;
	uint8_t pointer; /* encoding of addresses in FDEs */
	bool has_data;	 /* FDEs have a length of augmentation data */
	bool is_signal;
	struct cursor insns; /* instructions, in entry.cie_bytes */
};

struct cfi_entry {
	struct cfi_cie cie;
	bool is_cie;	     /* it is a CIE instead of an FDE; only `next` is set then */
	uint64_t start, end; /* the code that it describes */
	uint64_t insns_va;
	struct cursor insns;
	uint64_t next; /* address of the following entry in the section */
	uint8_t cie_bytes[CFI_MAX_CIE];
	uint8_t bytes[CFI_MAX_ENTRY];
};

/* A section to read. */
struct cfi_place {
	const struct cfi_source *src;
	enum cfi_kind kind;
};

/*
 * Reads the entry at va. Returns CFI_FOUND; CFI_NONE at the section's end; CFI_HOLE if bytes are
 * missing; or CFI_BAD. *x contains cursors to its own bytes, so it must not be copied.
 */
enum cfi_found cfi_entry_read(struct cfi_entry *x, const struct cfi_place *place, uint64_t va);

/*
 * cfi_pointer() reads a pointer with this encoding at the cursor. base_va is the address of the
 * cursor's byte 0; data_va is the base of CFI_PE_DATAREL (0: none). Returns false if the encoding
 * is not supported.
 */
struct cfi_base {
	uint64_t base_va, data_va;
};
bool cfi_pointer(struct cursor *c, uint8_t encoding, const struct cfi_base *base, uint64_t *out);

#endif

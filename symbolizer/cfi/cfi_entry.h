/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cfi_entry: one FDE with its CIE, taken apart. Formats as cfi_table.h has them. Inside of
 * the room.
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
	struct cursor insns; /* in `bytes` of the entry */
};

struct cfi_entry {
	struct cfi_cie cie;
	bool is_cie;	     /* found where an FDE was asked for; next is set alone */
	uint64_t start, end; /* of the code that it describes */
	uint64_t insns_va;
	struct cursor insns;
	uint64_t next; /* address of what follows in the section */
	uint8_t cie_bytes[CFI_MAX_CIE];
	uint8_t bytes[CFI_MAX_ENTRY];
};

/* What is read: a section's bytes. */
struct cfi_place {
	const struct cfi_source *src;
	enum cfi_kind kind;
};

/* The entry at va. CFI_NONE: the section's end is there. */
enum cfi_found cfi_entry_read(struct cfi_entry *x, const struct cfi_place *place, uint64_t va);

/*
 * A pointer of an encoding at the cursor, of which byte 0 is at base_va; data_va is what
 * CFI_PE_DATAREL counts from (0: nothing does). false: of a form that is not known here.
 */
struct cfi_base {
	uint64_t base_va, data_va;
};
bool cfi_pointer(struct cursor *c, uint8_t encoding, const struct cfi_base *base, uint64_t *out);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elf64: reads the tables of an ELF64 little-endian x86-64 file, one checked entry at a time.
 *
 * Source of the format: System V ABI, "Object Files"; numbers from <elf.h>. A struct elf64 borrows
 * the bytes of the file and allocates nothing. All functions except elf64_build_id() take constant
 * time, and may be called by any thread.
 */
#ifndef KVMPROF_SYMBOLIZER_CORE_ELF64_H
#define KVMPROF_SYMBOLIZER_CORE_ELF64_H

#include "base/cursor.h"
#include "base/err.h"

#include <elf.h>

#define ELF64_MAX_PHDRS 128
#define ELF64_MAX_SHDRS 65535

struct elf64 {
	struct cursor file;
	const char *name; /* for messages */
	uint16_t type;
	uint64_t entry, phoff, shoff;
	uint32_t phnum, shnum;	       /* 0: no such table */
	uint64_t shstr_off, shstr_len; /* section names; length 0: none */
};

/*
 * Initialises *f with a file of len bytes; data and name (for messages) are borrowed. Returns 0,
 * or -EINVAL with *e set if it is not ELF64 for x86-64, or its tables are not inside the file.
 */
int elf64_open(struct elf64 *f, const char *name, const uint8_t *data, size_t len, struct err *e);

/* Return a copy of entry i, which must be less than phnum or shnum. */
Elf64_Phdr elf64_phdr(const struct elf64 *f, uint32_t i);
Elf64_Shdr elf64_shdr(const struct elf64 *f, uint32_t i);

/* Returns the section's name, which is in the file, or "" if it has none. */
const char *elf64_section_name(const struct elf64 *f, const Elf64_Shdr *s);

/*
 * Copies up to max bytes of the GNU build id among the notes in [off, off + len) of the file.
 * Returns the number of bytes copied, 0 if there is none.
 */
unsigned int elf64_build_id(const struct elf64 *f, uint64_t off, uint64_t len, uint8_t *id,
			    unsigned int max);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elf64: the tables of an ELF64 little-endian x86-64 file, one checked entry at a time.
 *
 * Source of the format: System V ABI, "Object Files"; numbers from <elf.h>.
 * Borrows the bytes of the file. All but elf64_build_id take constant time.
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
	uint64_t shstr_off, shstr_len; /* section names; len 0: none */
};

/* 0, or -EINVAL: not ELF64 for x86-64, or its tables lie outside the file. */
int elf64_open(struct elf64 *f, const char *name, const uint8_t *data, size_t len, struct err *e);

/* i < phnum, i < shnum */
Elf64_Phdr elf64_phdr(const struct elf64 *f, uint32_t i);
Elf64_Shdr elf64_shdr(const struct elf64 *f, uint32_t i);

/* The section's name, or "" when it has none. */
const char *elf64_section_name(const struct elf64 *f, const Elf64_Shdr *s);

/*
 * The GNU build id among the notes in len bytes at off: copies up to max bytes,
 * returns their number or 0 when there is none.
 */
unsigned int elf64_build_id(const struct elf64 *f, uint64_t off, uint64_t len, uint8_t *id,
			    unsigned int max);

#endif

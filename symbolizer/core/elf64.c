/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/core/elf64.h"

#include "base/elf_struct.h"

#include <errno.h>
#include <string.h>

/* Limit for the notes of one section or segment; a kernel has about ten. */
#define MAX_NOTES 1024

Elf64_Phdr elf64_phdr(const struct elf64 *f, uint32_t i)
{
	struct cursor c = cursor_window(&f->file, f->phoff + (uint64_t)i * sizeof(Elf64_Phdr),
					sizeof(Elf64_Phdr));

	return cursor_phdr(&c);
}

Elf64_Shdr elf64_shdr(const struct elf64 *f, uint32_t i)
{
	struct cursor c = cursor_window(&f->file, f->shoff + (uint64_t)i * sizeof(Elf64_Shdr),
					sizeof(Elf64_Shdr));

	return cursor_shdr(&c);
}

/* Returns whether n entries of `size` bytes at off are inside the file. */
static bool table_fits(const struct elf64 *f, uint64_t off, uint64_t n, uint64_t size)
{
	struct cursor w = cursor_window(&f->file, off, n * size);

	return !w.bad;
}

int elf64_open(struct elf64 *f, const char *name, const uint8_t *data, size_t len, struct err *e)
{
	struct elf64 x = { .name = name };
	struct cursor c;
	uint32_t shstrndx;
	Elf64_Ehdr h;

	cursor_init(&x.file, data, len);
	c = x.file;
	h = cursor_ehdr(&c);
	if (len < EI_NIDENT || memcmp(data, ELFMAG, SELFMAG) != 0)
		return err_set(e, EINVAL, "%s: not an ELF file", name);
	if (data[EI_CLASS] != ELFCLASS64 || data[EI_DATA] != ELFDATA2LSB)
		return err_set(e, EINVAL,
			       "%s: ELF class %u, byte order %u; expected 64-bit little-endian",
			       name, data[EI_CLASS], data[EI_DATA]);
	if (c.bad)
		return err_set(e, EINVAL, "%s: file ends inside the ELF header (%zu bytes)", name,
			       len);
	if (h.e_machine != EM_X86_64)
		return err_set(e, EINVAL, "%s: ELF machine %u, expected %u (x86-64)", name,
			       h.e_machine, EM_X86_64);
	x.type = h.e_type;
	x.entry = h.e_entry;
	x.phoff = h.e_phoff;
	x.shoff = h.e_shoff;
	if (h.e_phnum > ELF64_MAX_PHDRS || (h.e_phnum && h.e_phentsize != sizeof(Elf64_Phdr)) ||
	    !table_fits(&x, x.phoff, h.e_phnum, sizeof(Elf64_Phdr)))
		return err_set(e, EINVAL,
			       "%s: program headers (%u of %u bytes at offset %llu) are "
			       "not inside the file",
			       name, h.e_phnum, h.e_phentsize, (unsigned long long)x.phoff);
	x.phnum = h.e_phnum;
	if (x.shoff == 0) {
		*f = x;
		return 0;
	}
	if (h.e_shentsize != sizeof(Elf64_Shdr) || !table_fits(&x, x.shoff, 1, sizeof(Elf64_Shdr)))
		return err_set(e, EINVAL,
			       "%s: section headers (%u of %u bytes at offset %llu) are "
			       "not inside the file",
			       name, h.e_shnum, h.e_shentsize, (unsigned long long)x.shoff);
	/* Numbers that do not fit in 16 bits are in section 0 (System V ABI, "ELF Header"). */
	x.shnum = h.e_shnum;
	shstrndx = h.e_shstrndx;
	if (h.e_shnum == 0 && elf64_shdr(&x, 0).sh_size <= ELF64_MAX_SHDRS)
		x.shnum = (uint32_t)elf64_shdr(&x, 0).sh_size;
	if (h.e_shstrndx == SHN_XINDEX)
		shstrndx = elf64_shdr(&x, 0).sh_link;
	if (!table_fits(&x, x.shoff, x.shnum, sizeof(Elf64_Shdr)))
		return err_set(e, EINVAL,
			       "%s: %u section headers at offset %llu do not fit the file", name,
			       x.shnum, (unsigned long long)x.shoff);
	if (shstrndx && shstrndx < x.shnum) {
		Elf64_Shdr s = elf64_shdr(&x, shstrndx);

		if (s.sh_type == SHT_STRTAB &&
		    !cursor_window(&x.file, s.sh_offset, s.sh_size).bad) {
			x.shstr_off = s.sh_offset;
			x.shstr_len = s.sh_size;
		}
	}
	*f = x;
	return 0;
}

const char *elf64_section_name(const struct elf64 *f, const Elf64_Shdr *s)
{
	struct cursor names = cursor_window(&f->file, f->shstr_off, f->shstr_len);
	struct cursor one;

	/*
	 * The names that callers compare with are short; a longer one need not be read completely.
	 */
	if (s->sh_name >= names.len)
		return "";
	one = cursor_window(&names, s->sh_name,
			    names.len - s->sh_name < 64 ? names.len - s->sh_name : 64);
	return cursor_str_at(&one, 0) ? (const char *)one.base : "";
}

unsigned int elf64_build_id(const struct elf64 *f, uint64_t off, uint64_t len, uint8_t *id,
			    unsigned int max)
{
	struct cursor c = cursor_window(&f->file, off, len);

	for (unsigned int n = 0; n < MAX_NOTES && cursor_left(&c) >= 12; n++) {
		uint32_t namesz = cursor_u32(&c), descsz = cursor_u32(&c), type = cursor_u32(&c);
		const uint8_t *name = cursor_bytes(&c, ((uint64_t)namesz + 3) & ~3ull);
		const uint8_t *desc = cursor_bytes(&c, descsz);

		if (!name || !desc)
			return 0;
		if (type == NT_GNU_BUILD_ID && namesz == 4 && !memcmp(name, "GNU", 4) && descsz &&
		    descsz <= max) {
			memcpy(id, desc, descsz);
			return descsz;
		}
		cursor_skip(&c, (4 - descsz % 4) % 4);
	}
	return 0;
}

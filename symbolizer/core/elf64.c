/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/core/elf64.h"

#include <errno.h>
#include <string.h>

/* Notes looked at per section or segment; a kernel has about ten. */
#define MAX_NOTES 1024

Elf64_Phdr elf64_phdr(const struct elf64 *f, uint32_t i)
{
	struct cursor c = cursor_window(&f->file, f->phoff + (uint64_t)i * sizeof(Elf64_Phdr),
					sizeof(Elf64_Phdr));
	Elf64_Phdr p;

	p.p_type = cursor_u32(&c);
	p.p_flags = cursor_u32(&c);
	p.p_offset = cursor_u64(&c);
	p.p_vaddr = cursor_u64(&c);
	p.p_paddr = cursor_u64(&c);
	p.p_filesz = cursor_u64(&c);
	p.p_memsz = cursor_u64(&c);
	p.p_align = cursor_u64(&c);
	return p;
}

Elf64_Shdr elf64_shdr(const struct elf64 *f, uint32_t i)
{
	struct cursor c = cursor_window(&f->file, f->shoff + (uint64_t)i * sizeof(Elf64_Shdr),
					sizeof(Elf64_Shdr));
	Elf64_Shdr s;

	s.sh_name = cursor_u32(&c);
	s.sh_type = cursor_u32(&c);
	s.sh_flags = cursor_u64(&c);
	s.sh_addr = cursor_u64(&c);
	s.sh_offset = cursor_u64(&c);
	s.sh_size = cursor_u64(&c);
	s.sh_link = cursor_u32(&c);
	s.sh_info = cursor_u32(&c);
	s.sh_addralign = cursor_u64(&c);
	s.sh_entsize = cursor_u64(&c);
	return s;
}

/* Are n entries of size bytes at off inside the file? */
static bool table_fits(const struct elf64 *f, uint64_t off, uint64_t n, uint64_t size)
{
	struct cursor w = cursor_window(&f->file, off, n * size);

	return !w.bad;
}

int elf64_open(struct elf64 *f, const char *name, const uint8_t *data, size_t len, struct err *e)
{
	struct elf64 x = { .name = name };
	struct cursor c;
	const uint8_t *id;
	uint16_t machine, phentsize, shentsize, phnum, shnum, shstrndx16;
	uint32_t shstrndx;

	cursor_init(&x.file, data, len);
	c = x.file;
	id = cursor_bytes(&c, EI_NIDENT);
	if (!id || memcmp(id, ELFMAG, SELFMAG) != 0)
		return err_set(e, EINVAL, "%s: not an ELF file", name);
	if (id[EI_CLASS] != ELFCLASS64 || id[EI_DATA] != ELFDATA2LSB)
		return err_set(e, EINVAL,
			       "%s: ELF class %u, byte order %u; expected 64-bit little-endian",
			       name, id[EI_CLASS], id[EI_DATA]);
	x.type = cursor_u16(&c);
	machine = cursor_u16(&c);
	cursor_skip(&c, 4);
	x.entry = cursor_u64(&c);
	x.phoff = cursor_u64(&c);
	x.shoff = cursor_u64(&c);
	cursor_skip(&c, 4 + 2);
	phentsize = cursor_u16(&c);
	phnum = cursor_u16(&c);
	shentsize = cursor_u16(&c);
	shnum = cursor_u16(&c);
	shstrndx16 = cursor_u16(&c);
	if (c.bad)
		return err_set(e, EINVAL, "%s: file ends inside the ELF header (%zu bytes)", name,
			       len);
	if (machine != EM_X86_64)
		return err_set(e, EINVAL, "%s: ELF machine %u, expected %u (x86-64)", name, machine,
			       EM_X86_64);
	if (phnum > ELF64_MAX_PHDRS || (phnum && phentsize != sizeof(Elf64_Phdr)) ||
	    !table_fits(&x, x.phoff, phnum, sizeof(Elf64_Phdr)))
		return err_set(e, EINVAL,
			       "%s: program headers (%u of %u bytes at offset %llu) are "
			       "not inside the file",
			       name, phnum, phentsize, (unsigned long long)x.phoff);
	x.phnum = phnum;
	if (x.shoff == 0) {
		*f = x;
		return 0;
	}
	if (shentsize != sizeof(Elf64_Shdr) || !table_fits(&x, x.shoff, 1, sizeof(Elf64_Shdr)))
		return err_set(e, EINVAL,
			       "%s: section headers (%u of %u bytes at offset %llu) are "
			       "not inside the file",
			       name, shnum, shentsize, (unsigned long long)x.shoff);
	/* Numbers that do not fit 16 bits live in section 0 (System V ABI, "ELF Header"). */
	x.shnum = shnum;
	shstrndx = shstrndx16;
	if (shnum == 0 && elf64_shdr(&x, 0).sh_size <= ELF64_MAX_SHDRS)
		x.shnum = (uint32_t)elf64_shdr(&x, 0).sh_size;
	if (shstrndx16 == SHN_XINDEX)
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

	/* The names that we look for are short; a longer one need not be scanned. */
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

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/program/userelf.h"

#include "base/cursor.h"
#include "base/elf_struct.h"
#include "symbolizer/core/elf64.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

/* Notes have a few hundred bytes; a core-like file's may have more. */
#define MAX_NOTE_BYTES (64u << 10)

/* Defined since binutils 2.40; older headers of the C library lack it. */
#ifndef PT_GNU_SFRAME
#define PT_GNU_SFRAME 0x6474e554
#endif

static int check_ident(const struct userelf *u, const uint8_t *id, uint16_t machine, struct err *e)
{
	if (memcmp(id, ELFMAG, SELFMAG) != 0)
		return err_set(e, EINVAL, "%s: not an ELF file", u->name);
	if (id[EI_CLASS] == ELFCLASS32)
		return err_set(e, EINVAL,
			       "%s: a 32-bit program (ELF32, machine %u); only x86-64 programs "
			       "are read",
			       u->name, machine);
	if (id[EI_CLASS] != ELFCLASS64 || id[EI_DATA] != ELFDATA2LSB)
		return err_set(e, EINVAL,
			       "%s: ELF class %u, byte order %u; expected 64-bit little-endian",
			       u->name, id[EI_CLASS], id[EI_DATA]);
	if (machine != EM_X86_64)
		return err_set(e, EINVAL, "%s: ELF machine %u, expected %u (x86-64)", u->name,
			       machine, EM_X86_64);
	return 0;
}

static int read_header(struct userelf *u, uint64_t *phoff, unsigned int *phnum, struct err *e)
{
	struct filepiece p = { 0 };
	struct cursor c;
	Elf64_Ehdr h;
	bool there;
	int ret = filepiece_read(&p, &u->src, 0, sizeof(h), sizeof(h));

	if (ret == -EINVAL)
		return err_set(e, EINVAL, "%s: %llu bytes are too few for an ELF file", u->name,
			       (unsigned long long)u->src.len);
	if (ret < 0)
		return err_set(e, -ret, "%s: no memory", u->name);
	there = filepiece_has(&p, 0, sizeof(h));
	c = filepiece_cursor(&p);
	h = cursor_ehdr(&c);
	filepiece_deinit(&p);
	if (!there)
		return err_set(e, ENODATA, "%s: its first page is not in memory", u->name);
	ret = check_ident(u, h.e_ident, h.e_machine, e);
	if (ret < 0)
		return ret;
	u->type = h.e_type;
	u->entry = h.e_entry;
	u->shoff = h.e_shentsize == sizeof(Elf64_Shdr) ? h.e_shoff : 0;
	u->shnum = h.e_shnum;
	u->shstrndx = h.e_shstrndx;
	if (u->type != ET_EXEC && u->type != ET_DYN)
		return err_set(e, EINVAL,
			       "%s: ELF type %u, expected a program or a library (%u, %u)", u->name,
			       u->type, ET_EXEC, ET_DYN);
	if (h.e_phnum == 0 || h.e_phnum > USERELF_MAX_PHDRS || h.e_phentsize != sizeof(Elf64_Phdr))
		return err_set(e, EINVAL,
			       "%s: %u program headers of %u bytes; expected 1 to %u of %zu",
			       u->name, h.e_phnum, h.e_phentsize, USERELF_MAX_PHDRS,
			       sizeof(Elf64_Phdr));
	*phoff = h.e_phoff;
	*phnum = h.e_phnum;
	return 0;
}

static int add_segment(struct userelf *u, const Elf64_Phdr *p, struct err *e)
{
	if (p->p_memsz == 0)
		return 0;
	if (p->p_filesz > p->p_memsz || p->p_memsz > UINT64_MAX - p->p_vaddr ||
	    p->p_filesz > UINT64_MAX - p->p_offset)
		return err_set(e, EINVAL,
			       "%s: a segment's sizes, 0x%llx in the file and 0x%llx in memory at "
			       "0x%llx, make no sense",
			       u->name, (unsigned long long)p->p_filesz,
			       (unsigned long long)p->p_memsz, (unsigned long long)p->p_vaddr);
	if (u->nseg == USERELF_MAX_SEGMENTS)
		return err_set(e, EINVAL, "%s: more than %u loadable segments", u->name,
			       USERELF_MAX_SEGMENTS);
	u->seg[u->nseg++] = (struct userelf_segment){
		.va = p->p_vaddr,
		.file_off = p->p_offset,
		.file_len = p->p_filesz,
		.mem_len = p->p_memsz,
		.align = p->p_align,
		.flags = p->p_flags,
	};
	return 0;
}

static void read_notes(struct userelf *u, uint64_t off, uint64_t len)
{
	struct filepiece p = { 0 };
	struct elf64 f = { .name = u->name };

	if (u->build_id_len || filepiece_read(&p, &u->src, off, len, MAX_NOTE_BYTES) < 0)
		return;
	if (p.nmissing) {
		u->notes_missing = true;
	} else {
		f.file = filepiece_cursor(&p);
		u->build_id_len = elf64_build_id(&f, 0, p.len, u->build_id, USERELF_BUILD_ID_MAX);
	}
	filepiece_deinit(&p);
}

static int read_phdrs(struct userelf *u, uint64_t off, unsigned int n, struct err *e)
{
	struct filepiece p = { 0 };
	struct elf64 f = { .name = u->name, .phnum = n };
	int ret = filepiece_read(&p, &u->src, off, n * sizeof(Elf64_Phdr),
				 USERELF_MAX_PHDRS * sizeof(Elf64_Phdr));

	if (ret == -ENOMEM)
		return err_set(e, ENOMEM, "%s: no memory", u->name);
	if (ret < 0)
		return err_set(e, EINVAL, "%s: program headers (%u at offset %llu) are not in it",
			       u->name, n, (unsigned long long)off);
	if (p.nmissing)
		ret = err_set(e, ENODATA, "%s: its program headers are not in memory", u->name);
	f.file = filepiece_cursor(&p);
	for (unsigned int i = 0; i < n && ret == 0; i++) {
		Elf64_Phdr h = elf64_phdr(&f, i);

		if (h.p_type == PT_LOAD) {
			ret = add_segment(u, &h, e);
		} else if (h.p_type == PT_NOTE) {
			read_notes(u, h.p_offset, h.p_filesz);
		} else if (h.p_type == PT_DYNAMIC) {
			u->dynamic_off = h.p_offset;
			u->dynamic_len = h.p_filesz;
		} else if (h.p_type == PT_GNU_EH_FRAME) {
			u->frames_va = h.p_vaddr;
			u->frames_len = h.p_memsz;
		} else if (h.p_type == PT_GNU_SFRAME) {
			u->sframe_va = h.p_vaddr;
			u->sframe_len = h.p_memsz;
		}
	}
	filepiece_deinit(&p);
	if (ret == 0 && u->nseg == 0)
		ret = err_set(e, EINVAL, "%s: no loadable segment", u->name);
	return ret;
}

int userelf_open(struct userelf *u, const char *name, const struct file_source *src, struct err *e)
{
	struct userelf x = { .name = name, .src = *src };
	uint64_t phoff = 0;
	unsigned int phnum = 0;
	int ret = read_header(&x, &phoff, &phnum, e);

	if (ret)
		return ret;
	ret = read_phdrs(&x, phoff, phnum, e);
	if (ret)
		return ret;
	*u = x;
	return 0;
}

/*
 * Returns whether a segment covers the offset. The kernel maps whole pages: the bytes around a
 * segment's first and last ones are mapped with it, and may be looked up.
 */
static bool covers_off(const struct userelf_segment *s, uint64_t off, bool whole_pages)
{
	uint64_t slack = s->va % FILEPIECE_PAGE, end = s->file_off + s->file_len;

	if (!whole_pages)
		return off >= s->file_off && off < end;
	if (slack > s->file_off)
		slack = s->file_off;
	if (end > UINT64_MAX - FILEPIECE_PAGE)
		return false;
	end = (end + FILEPIECE_PAGE - 1) & ~(uint64_t)(FILEPIECE_PAGE - 1);
	return s->file_len && off >= s->file_off - slack && off < end;
}

bool userelf_va_of(const struct userelf *u, uint64_t file_off, uint64_t *va)
{
	for (unsigned int pass = 0; pass < 4; pass++)
		for (unsigned int i = 0; i < u->nseg; i++) {
			const struct userelf_segment *s = &u->seg[i];

			/* Order: executable, exact; executable, by page; then others likewise. */
			if (!(s->flags & PF_X) == (pass < 2) || !covers_off(s, file_off, pass & 1))
				continue;
			*va = s->va + (file_off - s->file_off);
			return true;
		}
	return false;
}

bool userelf_off_of(const struct userelf *u, uint64_t va, uint64_t *file_off)
{
	for (unsigned int i = 0; i < u->nseg; i++) {
		const struct userelf_segment *s = &u->seg[i];

		if (va >= s->va && va - s->va < s->file_len) {
			*file_off = s->file_off + (va - s->va);
			return true;
		}
	}
	return false;
}

bool userelf_is_text(const struct userelf *u, uint64_t va)
{
	for (unsigned int i = 0; i < u->nseg; i++) {
		const struct userelf_segment *s = &u->seg[i];

		if ((s->flags & PF_X) && va >= s->va && va - s->va < s->mem_len)
			return true;
	}
	return false;
}

const char *userelf_part_name(enum userelf_part p)
{
	static const char *const name[] = { "absent", "read", "not in memory", "damaged" };

	return p <= USERELF_BAD ? name[p] : "?";
}

/* -- code bytes -------------------------------------------------------------------------- */

/* Returns whether va is in a section of code that has no bytes in the file. */
static bool has_no_bytes(const struct userelf *u, const uint8_t *data, size_t len, uint64_t va)
{
	struct cursor c;

	cursor_init(&c, data, len);
	cursor_seek(&c, u->shoff);
	for (uint32_t i = 0; u->shoff && i < u->shnum && cursor_left(&c) >= sizeof(Elf64_Shdr);
	     i++) {
		uint64_t flags, addr, size;
		uint32_t type;

		cursor_u32(&c); /* sh_name */
		type = cursor_u32(&c);
		flags = cursor_u64(&c);
		addr = cursor_u64(&c);
		cursor_u64(&c); /* sh_offset */
		size = cursor_u64(&c);
		cursor_skip(&c, sizeof(Elf64_Shdr) - 40);
		if (flags & SHF_EXECINSTR && va >= addr && va - addr < size)
			return type == SHT_NOBITS;
	}
	return false;
}

size_t userelf_text_at(const struct userelf *u, const uint8_t *data, size_t data_len, uint64_t va,
		       size_t len, const uint8_t **out)
{
	if (has_no_bytes(u, data, data_len, va))
		return 0;
	for (unsigned int i = 0; i < u->nseg; i++) {
		const struct userelf_segment *s = &u->seg[i];
		uint64_t in = va - s->va, off;

		if (!(s->flags & PF_X) || va < s->va || in >= s->file_len ||
		    __builtin_add_overflow(s->file_off, in, &off) || off >= data_len)
			continue;
		if (len > s->file_len - in)
			len = (size_t)(s->file_len - in);
		if (len > data_len - off)
			len = (size_t)(data_len - off);
		*out = data + off;
		return len;
	}
	return 0;
}

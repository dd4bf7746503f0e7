/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Converts everything that can be loaded to an ELF64: one form for the loader, the symbolizer and
 * the files that perf reads.
 *
 * An ELF32 executable is widened: headers, section headers and symbols in their 64-bit form, all
 * other bytes unchanged and moved as a whole:
 *
 *	out := Elf64_Ehdr Elf64_Phdr[phnum] file Elf64_Sym[]... Elf64_Shdr[shnum]
 *
 * Bytes without a format get a header with one segment in front. Sources: ELF-32 and ELF-64 Object
 * File Format; System V ABI, Intel386 supplement.
 */
#include "vmm/image/widen.h"

#include "vmm/image/parse.h"

#include "base/buf.h"
#include "base/cursor.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Xen has 2, Linux 3; a file with more is not a kernel. */
#define ELF32_MAX_PHDRS 64
#define ELF32_MAX_SHDRS 4096
#define ELF32_MAX_SYMS (4u << 20)
#define WIDE_ALIGN 16u

struct elf32 {
	const char *name;
	struct cursor c;
	Elf32_Ehdr h;
	uint64_t base; /* offset of the file's bytes in the result */
};

static int read_header(struct elf32 *f, struct err *e)
{
	const uint8_t *p = cursor_bytes(&f->c, sizeof(f->h));

	if (!p)
		return err_set(e, EINVAL, "%s: truncated ELF file (%zu bytes, the header has %zu)",
			       f->name, f->c.len, sizeof(f->h));
	memcpy(&f->h, p, sizeof(f->h));
	if (f->h.e_ident[EI_DATA] != ELFDATA2LSB || f->h.e_machine != EM_386)
		return err_set(e, ENOTSUP,
			       "%s: a 32-bit ELF file for another machine (e_machine %u, expected "
			       "%u); give a kernel for x86",
			       f->name, f->h.e_machine, EM_386);
	if (f->h.e_type != ET_EXEC)
		return err_set(e, EINVAL,
			       "%s: a 32-bit ELF file of type %u (expected %u, an executable)",
			       f->name, f->h.e_type, ET_EXEC);
	if (f->h.e_phentsize != sizeof(Elf32_Phdr) || !f->h.e_phnum ||
	    f->h.e_phnum > ELF32_MAX_PHDRS)
		return err_set(e, EINVAL,
			       "%s: %u ELF program headers of %u bytes (expected 1 to %u of %zu); "
			       "not a kernel",
			       f->name, f->h.e_phnum, f->h.e_phentsize, ELF32_MAX_PHDRS,
			       sizeof(Elf32_Phdr));
	/* A kernel without section headers boots as well. */
	if (f->h.e_shentsize != sizeof(Elf32_Shdr) || f->h.e_shnum > ELF32_MAX_SHDRS ||
	    cursor_window(&f->c, f->h.e_shoff, (uint64_t)f->h.e_shnum * sizeof(Elf32_Shdr)).bad)
		f->h.e_shnum = f->h.e_shstrndx = 0;
	return 0;
}

static int widen_phdrs(const struct elf32 *f, struct buf *b, struct err *e)
{
	struct cursor w = cursor_window(&f->c, f->h.e_phoff, f->h.e_phnum * sizeof(Elf32_Phdr));

	for (unsigned int i = 0; i < f->h.e_phnum; i++) {
		const uint8_t *p = cursor_bytes(&w, sizeof(Elf32_Phdr));
		Elf32_Phdr in;
		Elf64_Phdr out;

		if (!p)
			return err_set(e, EINVAL,
				       "%s: truncated: the ELF program headers at offset 0x%x lie "
				       "past the end (%zu bytes)",
				       f->name, f->h.e_phoff, f->c.len);
		memcpy(&in, p, sizeof(in));
		out = (Elf64_Phdr){
			.p_type = in.p_type,
			.p_flags = in.p_flags,
			.p_offset = f->base + in.p_offset,
			.p_vaddr = in.p_vaddr,
			.p_paddr = in.p_paddr,
			.p_filesz = in.p_filesz,
			.p_memsz = in.p_memsz,
			.p_align = in.p_align,
		};
		buf_add(b, &out, sizeof(out));
	}
	return 0;
}

/*
 * Widens the symbol table. Its entries become longer, so it is appended to the file. A file has
 * one (System V ABI, "Sections"): further ones in a hostile file, which may all use the same
 * bytes, are left empty.
 */
static void widen_symbols(const struct elf32 *f, struct buf *b, Elf64_Shdr *s, uint32_t off,
			  bool *have)
{
	size_t n = s->sh_size / sizeof(Elf32_Sym);
	struct cursor w = cursor_window(&f->c, off, n * sizeof(Elf32_Sym));

	if (w.bad || n > ELF32_MAX_SYMS || *have)
		n = 0;
	*have |= n > 0;
	buf_align(b, WIDE_ALIGN);
	s->sh_offset = b->len;
	s->sh_size = n * sizeof(Elf64_Sym);
	s->sh_entsize = sizeof(Elf64_Sym);
	for (size_t i = 0; i < n; i++) {
		Elf32_Sym in;
		Elf64_Sym out;

		memcpy(&in, cursor_bytes(&w, sizeof(in)), sizeof(in));
		out = (Elf64_Sym){
			.st_name = in.st_name,
			.st_info = in.st_info,
			.st_other = in.st_other,
			.st_shndx = in.st_shndx,
			.st_value = in.st_value,
			.st_size = in.st_size,
		};
		buf_add(b, &out, sizeof(out));
	}
}

static void widen_sections(const struct elf32 *f, struct buf *b)
{
	struct cursor w = cursor_window(&f->c, f->h.e_shoff, f->h.e_shnum * sizeof(Elf32_Shdr));
	struct buf headers;
	bool have = false;
	uint64_t at;

	buf_init(&headers);
	for (unsigned int i = 0; i < f->h.e_shnum; i++) {
		Elf32_Shdr in;
		Elf64_Shdr out;

		memcpy(&in, cursor_bytes(&w, sizeof(in)), sizeof(in));
		out = (Elf64_Shdr){
			.sh_name = in.sh_name,
			.sh_type = in.sh_type,
			.sh_flags = in.sh_flags,
			.sh_addr = in.sh_addr,
			.sh_offset = in.sh_type == SHT_NULL ? 0 : f->base + in.sh_offset,
			.sh_size = in.sh_size,
			.sh_link = in.sh_link,
			.sh_info = in.sh_info,
			.sh_addralign = in.sh_addralign,
			.sh_entsize = in.sh_entsize,
		};
		if (in.sh_type == SHT_SYMTAB)
			widen_symbols(f, b, &out, in.sh_offset, &have);
		buf_add(&headers, &out, sizeof(out));
	}
	buf_align(b, WIDE_ALIGN);
	at = b->len;
	buf_add(b, headers.data, headers.len);
	b->failed |= headers.failed;
	buf_deinit(&headers);
	if (!b->failed)
		buf_put64(b, offsetof(Elf64_Ehdr, e_shoff), at);
}

static Elf64_Ehdr wide_header(uint64_t entry, uint16_t phnum)
{
	return (Elf64_Ehdr){
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_entry = entry,
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = phnum,
		.e_shentsize = sizeof(Elf64_Shdr),
	};
}

static int widen_finish(struct boot_image *img, const char *name, struct buf *b, struct err *e)
{
	if (b->failed) {
		buf_deinit(b);
		return err_set(e, ENOMEM, "%s: no memory for a copy of it", name);
	}
	free(img->unpacked);
	img->unpacked = b->data;
	img->elf = b->data;
	img->elf_len = b->len;
	return 0;
}

int widen_elf32(struct boot_image *img, const char *name, const uint8_t *file, size_t len,
		struct err *e)
{
	struct elf32 f = { .name = name };
	Elf64_Ehdr h;
	struct buf b;
	int r;

	cursor_init(&f.c, file, len);
	r = read_header(&f, e);
	if (r)
		return r;
	h = wide_header(f.h.e_entry, f.h.e_phnum);
	h.e_shnum = f.h.e_shnum;
	h.e_shstrndx = f.h.e_shstrndx < f.h.e_shnum ? f.h.e_shstrndx : 0;
	f.base = (sizeof(h) + f.h.e_phnum * sizeof(Elf64_Phdr) + WIDE_ALIGN - 1) &
		 ~(uint64_t)(WIDE_ALIGN - 1);
	buf_init(&b);
	buf_add(&b, &h, sizeof(h));
	r = widen_phdrs(&f, &b, e);
	if (r) {
		buf_deinit(&b);
		return r;
	}
	buf_align(&b, WIDE_ALIGN);
	buf_add(&b, file, len);
	if (f.h.e_shnum)
		widen_sections(&f, &b);
	return widen_finish(img, name, &b, e);
}

int widen_flat(struct boot_image *img, const char *name, const struct boot_flat *flat,
	       struct err *e)
{
	Elf64_Ehdr h = wide_header(flat->entry, 1);
	Elf64_Phdr p = {
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_W | PF_X,
		.p_offset = sizeof(h) + sizeof(p),
		.p_vaddr = flat->gpa,
		.p_paddr = flat->gpa,
		.p_filesz = flat->len,
		.p_memsz = flat->mem_len,
	};
	struct buf b;

	h.e_shentsize = 0;
	buf_init(&b);
	buf_add(&b, &h, sizeof(h));
	buf_add(&b, &p, sizeof(p));
	buf_add(&b, flat->data, flat->len);
	return widen_finish(img, name, &b, e);
}

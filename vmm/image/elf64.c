/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parses ELF64 executables for x86-64: header and program headers, nothing else.
 */
#include "vmm/image/elf64.h"

#include "vmm/image/parse.h"

#include "base/elf_struct.h"
#include "vmm/image/multiboot.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* A vmlinux has 5; core files, which are rejected, have thousands. */
#define ELF64_MAX_PHDRS 64

/* The loader's page tables map this much, so no kernel above it can be entered. */
#define ELF64_ADDR_LIMIT (4ull << 30)

static const char *machine_name(uint16_t machine)
{
	switch (machine) {
	case EM_386:
		return "32-bit x86";
	case EM_ARM:
		return "32-bit ARM";
	case EM_AARCH64:
		return "arm64";
	case EM_RISCV:
		return "RISC-V";
	case EM_PPC64:
		return "PowerPC 64";
	case EM_S390:
		return "s390";
	case EM_LOONGARCH:
		return "LoongArch";
	default:
		return "another machine";
	}
}

static int check_header(const Elf64_Ehdr *h, const char *name, struct err *e)
{
	if (h->e_ident[EI_DATA] != ELFDATA2LSB)
		return err_set(
			e, ENOTSUP,
			"%s: a big-endian ELF file, not for x86-64 (EI_DATA %u, expected %u); "
			"give an x86-64 vmlinux or bzImage",
			name, h->e_ident[EI_DATA], ELFDATA2LSB);
	if (h->e_ident[EI_CLASS] != ELFCLASS64)
		return err_set(
			e, ENOTSUP,
			"%s: an ELF file for %s of an unknown class (EI_CLASS %u, expected %u or "
			"%u); give a kernel for x86",
			name, machine_name(h->e_machine), h->e_ident[EI_CLASS], ELFCLASS32,
			ELFCLASS64);
	if (h->e_machine != EM_X86_64)
		return err_set(e, ENOTSUP,
			       "%s: an ELF file for %s (e_machine %u, expected %u); give an x86-64 "
			       "vmlinux or bzImage",
			       name, machine_name(h->e_machine), h->e_machine, EM_X86_64);
	if (h->e_type == ET_REL)
		return err_set(e, EINVAL,
			       "%s: an object file or kernel module (e_type ET_REL); give a linked "
			       "vmlinux",
			       name);
	if (h->e_type == ET_CORE)
		return err_set(
			e, EINVAL,
			"%s: a core dump (e_type ET_CORE); give the vmlinux that it came from",
			name);
	if (h->e_type != ET_EXEC && h->e_type != ET_DYN)
		return err_set(e, EINVAL, "%s: ELF e_type %u is not executable (expected %u or %u)",
			       name, h->e_type, ET_EXEC, ET_DYN);
	if (h->e_phentsize != sizeof(Elf64_Phdr))
		return err_set(e, EINVAL, "%s: damaged ELF header (e_phentsize %u, expected %zu)",
			       name, h->e_phentsize, sizeof(Elf64_Phdr));
	if (!h->e_phnum || h->e_phnum > ELF64_MAX_PHDRS)
		return err_set(e, EINVAL,
			       "%s: %u ELF program headers (expected 1 to %u); not a kernel", name,
			       h->e_phnum, ELF64_MAX_PHDRS);
	return 0;
}

/*
 * Inserts a segment in the order of addresses. An overlap sets img->unloaded: no loader can place
 * such a kernel.
 */
static void segment_add(struct boot_image *img, const char *name, const struct boot_segment *s)
{
	unsigned int at = img->nseg;

	if (img->nseg == BOOT_MAX_SEGMENTS) {
		err_set(&img->unloaded, EINVAL, "%s: more than %u loadable ELF segments", name,
			BOOT_MAX_SEGMENTS);
		return;
	}
	while (at > 0 && img->seg[at - 1].gpa > s->gpa)
		at--;
	if ((at > 0 && img->seg[at - 1].gpa + img->seg[at - 1].mem_len > s->gpa) ||
	    (at < img->nseg && s->gpa + s->mem_len > img->seg[at].gpa))
		err_set(&img->unloaded, EINVAL,
			"%s: the ELF segment at 0x%" PRIx64 " (0x%" PRIx64
			" bytes) overlaps another one in guest memory",
			name, s->gpa, s->mem_len);
	memmove(&img->seg[at + 1], &img->seg[at], (img->nseg - at) * sizeof(*s));
	img->seg[at] = *s;
	img->nseg++;
}

static int read_phdr(struct boot_image *img, struct cursor *c, const char *name, struct err *e)
{
	uint64_t at = c->pos, end;
	const Elf64_Phdr p = cursor_phdr(c);
	/* p_vaddr is 0 for the per-CPU segment of an SMP vmlinux. */
	struct boot_segment s = { .gpa = p.p_paddr,
				  .va = p.p_vaddr,
				  .file_off = p.p_offset,
				  .file_len = p.p_filesz,
				  .mem_len = p.p_memsz };

	if (c->bad)
		return err_set(e, EINVAL,
			       "%s: truncated: ELF program header at offset 0x%" PRIx64
			       " lies past the end (%zu bytes)",
			       name, at, c->len);
	if (p.p_type == PT_INTERP)
		return err_set(
			e, EINVAL,
			"%s: a dynamically linked program, not a kernel (ELF PT_INTERP); give "
			"a vmlinux or bzImage",
			name);
	if (p.p_type == PT_NOTE && !img->pvh_entry) {
		struct cursor notes = cursor_window(c, s.file_off, s.file_len);

		if (!notes.bad)
			img->pvh_entry = multiboot_pvh_note(notes.base, notes.len);
	}
	if (p.p_type != PT_LOAD || !s.mem_len)
		return 0;
	if (s.file_len > s.mem_len)
		return err_set(e, EINVAL,
			       "%s: damaged ELF program header at offset 0x%" PRIx64
			       " (p_filesz 0x%" PRIx64 " is more than p_memsz 0x%" PRIx64 ")",
			       name, at, s.file_len, s.mem_len);
	if (s.file_len && (__builtin_add_overflow(s.file_off, s.file_len, &end) || end > c->len))
		return err_set(e, EINVAL,
			       "%s: truncated: an ELF segment of 0x%" PRIx64
			       " bytes at offset 0x%" PRIx64 " ends after the file (0x%zx bytes)",
			       name, s.file_len, s.file_off, c->len);
	if (!s.file_len)
		s.file_off = 0; /* may point anywhere, and is not used */
	if (__builtin_add_overflow(s.gpa, s.mem_len, &end))
		return err_set(e, EINVAL,
			       "%s: damaged ELF program header at offset 0x%" PRIx64 " (0x%" PRIx64
			       " bytes at physical address 0x%" PRIx64 ")",
			       name, at, s.mem_len, s.gpa);
	/* The link address is used only for entries; one that wraps is replaced. */
	if (__builtin_add_overflow(s.va, s.mem_len, &end))
		s.va = s.gpa;
	/* Symbols and code can be read even if the kernel cannot be loaded. */
	if (s.gpa + s.mem_len > ELF64_ADDR_LIMIT)
		err_set(&img->unloaded, EINVAL,
			"%s: ELF segment at physical address 0x%" PRIx64 " (0x%" PRIx64
			" bytes) is not below 4 GiB; a kernel linked high needs p_paddr "
			"(\"AT\" in its linker script)",
			name, s.gpa, s.mem_len);
	segment_add(img, name, &s);
	return 0;
}

/*
 * Searches for the banner. It is in .rodata, in the first segment, so it is found within a few
 * MiB.
 */
static bool has_linux_banner(const struct boot_image *img)
{
	static const char banner[] = "Linux version ";

	for (unsigned int i = 0; i < img->nseg; i++) {
		const struct boot_segment *s = &img->seg[i];

		if (s->file_len &&
		    memmem(img->elf + s->file_off, s->file_len, banner, sizeof(banner) - 1))
			return true;
	}
	return false;
}

bool image_elf64_contains(const struct boot_image *img, uint64_t gpa)
{
	for (unsigned int i = 0; i < img->nseg; i++)
		if (gpa - img->seg[i].gpa < img->seg[i].mem_len)
			return true;
	return false;
}

uint64_t image_elf64_physical(const struct boot_image *img, uint64_t va)
{
	for (unsigned int i = 0; i < img->nseg; i++)
		if (va - img->seg[i].va < img->seg[i].mem_len)
			return va - img->seg[i].va + img->seg[i].gpa;
	return 0;
}

int image_elf64_parse(struct boot_image *img, const char *name, struct err *e)
{
	struct cursor c;
	Elf64_Ehdr h;
	int r;

	cursor_init(&c, img->elf, img->elf_len);
	h = cursor_ehdr(&c);
	if (c.bad)
		return err_set(e, EINVAL, "%s: truncated ELF file (%zu bytes, the header has %zu)",
			       name, c.len, sizeof(h));
	r = check_header(&h, name, e);
	if (r)
		return r;
	img->elf_entry = h.e_entry;
	cursor_seek(&c, h.e_phoff);
	for (unsigned int i = 0; i < h.e_phnum; i++) {
		r = read_phdr(img, &c, name, e);
		if (r)
			return r;
	}
	if (!img->nseg)
		return err_set(
			e, EINVAL,
			"%s: no loadable ELF segment (a file of debug symbols only?); give the "
			"kernel itself",
			name);

	/* The entry of a boot method that is not used may be anywhere. */
	if (!image_elf64_contains(img, img->pvh_entry))
		img->pvh_entry = 0;
	/* Kernels that are linked at high addresses often have a virtual entry: FreeBSD, NetBSD. */
	img->entry = image_elf64_contains(img, img->elf_entry)
			     ? img->elf_entry
			     : image_elf64_physical(img, img->elf_entry);
	img->low = img->seg[0].gpa;
	img->high = img->seg[img->nseg - 1].gpa + img->seg[img->nseg - 1].mem_len;
	/* The knowledge about Linux applies only to 64-bit kernels. */
	img->is_linux =
		img->kind == BOOT_BZIMAGE || (img->kind == BOOT_ELF64 && has_linux_banner(img));
	return 0;
}

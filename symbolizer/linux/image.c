/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/linux/image.h"

#include "symbolizer/core/elf64.h"

/* The header alone; what it says about tables is checked by who uses it. */
static bool read_header(linux_image_read read, void *ctx, Elf64_Ehdr *h)
{
	return read(ctx, 0, h, sizeof(*h)) == sizeof(*h) && !memcmp(h->e_ident, ELFMAG, SELFMAG) &&
	       h->e_ident[EI_CLASS] == ELFCLASS64 && h->e_ident[EI_DATA] == ELFDATA2LSB &&
	       h->e_phentsize == sizeof(Elf64_Phdr) && h->e_phnum <= LINUX_IMAGE_MAX_PHDRS;
}

static bool read_phdr(linux_image_read read, void *ctx, const Elf64_Ehdr *h, unsigned int i,
		      Elf64_Phdr *p)
{
	uint64_t off;

	return !__builtin_add_overflow(h->e_phoff, (uint64_t)i * sizeof(*p), &off) &&
	       read(ctx, off, p, sizeof(*p)) == sizeof(*p);
}

unsigned int linux_build_id(linux_image_read read, void *ctx, uint8_t id[LINUX_BUILD_ID_MAX])
{
	uint8_t notes[LINUX_IMAGE_MAX_NOTES];
	struct elf64 f = { .name = "" };
	unsigned int n = 0;
	Elf64_Ehdr h;
	Elf64_Phdr p;

	if (!read_header(read, ctx, &h))
		return 0;
	for (unsigned int i = 0; i < h.e_phnum && !n; i++) {
		size_t len;

		if (!read_phdr(read, ctx, &h, i, &p))
			return 0;
		if (p.p_type != PT_NOTE)
			continue;
		len = p.p_filesz < sizeof(notes) ? (size_t)p.p_filesz : sizeof(notes);
		len = read(ctx, p.p_offset, notes, len);
		cursor_init(&f.file, notes, len);
		n = elf64_build_id(&f, 0, len, id, LINUX_BUILD_ID_MAX);
	}
	return n;
}

size_t linux_mapped_read(void *ctx, uint64_t off, void *dst, size_t len)
{
	const struct linux_mapped *p = ctx;

	if (off >= p->len)
		return 0;
	if (len > p->len - off)
		len = (size_t)(p->len - off);
	return p->m->read(p->m->ctx, p->space, p->va + off, dst, len);
}

static uint64_t max_end(uint64_t so_far, uint64_t off, uint64_t len)
{
	uint64_t end;

	if (__builtin_add_overflow(off, len, &end) || end > LINUX_VDSO_MAX)
		return so_far; /* outside of what is read: its user will see that */
	return end > so_far ? end : so_far;
}

/* How far segments and the section table reach; 0: no ELF. */
static size_t image_length(linux_image_read read, void *ctx)
{
	uint64_t end = sizeof(Elf64_Ehdr);
	Elf64_Ehdr h;
	Elf64_Phdr p;

	if (!read_header(read, ctx, &h))
		return 0;
	end = max_end(end, h.e_shoff, (uint64_t)h.e_shnum * h.e_shentsize);
	for (unsigned int i = 0; i < h.e_phnum; i++)
		if (read_phdr(read, ctx, &h, i, &p) && p.p_type == PT_LOAD)
			end = max_end(end, p.p_offset, p.p_filesz);
	return (size_t)end;
}

/* The kernel's copy, which is mapped into all processes of this kind. */
static bool kernels_vdso(const struct linux_mm_layout *l, const struct memory *m, uint64_t mm,
			 struct linux_mapped *out)
{
	uint64_t image;

	*out = (struct linux_mapped){ .m = m, .space = MEMORY_KERNEL };
	if (l->mm_vdso_image == LINUX_NO_MEMBER || l->image_data == LINUX_NO_MEMBER ||
	    l->image_size == LINUX_NO_MEMBER || !memory_u64(m, mm + l->mm_vdso_image, &image) ||
	    !memory_u64(m, image + l->image_data, &out->va) ||
	    !memory_u64(m, image + l->image_size, &out->len))
		return false;
	if (out->len > LINUX_VDSO_MAX)
		out->len = LINUX_VDSO_MAX;
	return true;
}

size_t linux_vdso_read(const struct linux_mm_layout *l, const struct memory *m, uint64_t mm,
		       uint64_t space, uint8_t *buf)
{
	struct linux_mapped from;
	size_t len = 0;
	uint64_t va = linux_mm_vdso(l, m, mm);

	if (!va)
		return 0;
	if (kernels_vdso(l, m, mm, &from))
		len = image_length(linux_mapped_read, &from);
	if (!len) {
		from = (struct linux_mapped){ m, space, va, LINUX_VDSO_MAX };
		len = image_length(linux_mapped_read, &from);
	}
	return len ? linux_mapped_read(&from, 0, buf, len) : 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two processes of a kernel without types: the members on which linux_mm_layout_find() relies are
 * as in Linux, and all other offsets are invented.
 */
#ifndef KVMPROF_TESTS_LINUX_FIND_FIXTURE_H
#define KVMPROF_TESTS_LINUX_FIND_FIXTURE_H

#include "symbolizer/linux/file_find.h"
#include "symbolizer/linux/mm_find.h"
#include "tests/unit/linux_mm_fixture.h"

#include <elf.h>

#define LF_VMAS 11u /* for each process */

/* Offsets in the structures below. */
enum {
	LF_MM_ROOT = 64,
	LF_MM_PGD = 88,
	LF_MM_AUXV = 320,
	LF_MM_VDSO = 824,
	LF_MM_SIZE = 1024,
	LF_VMA_START = 8,
	LF_VMA_END = 0,
	LF_VMA_FLAGS = 40,
	LF_VMA_MM = 48,
	LF_VMA_PGOFF = 96,
	LF_VMA_FILE = 120,
	LF_VMA_SIZE = 136,
	LF_FILE_MNT = 40,
	LF_FILE_INODE = 72,
	LF_FILE_MAPPING = 96,
	LF_FILE_SIZE = 256,
	LF_INODE_MAPPING = 48,
	LF_INODE_DATA = 304,
	LF_INODE_SIZE = 512,
	LF_DENTRY_PARENT = 32,
	LF_DENTRY_SIZE = 128,
	LF_HEAD = 16, /* offset of the pages in struct address_space */
	LF_SIZE = 80, /* in struct inode */
};

struct lf {
	struct linux_mm_known known[2];
	uint64_t vma[2][LF_VMAS];
	uint64_t file[3]; /* /bin/worker, /lib/libc.so, a memfd */
	uint64_t dentry[3];
	uint64_t root, mnt, image;
	/* Facts about the first two files, if they have pages: lf_elf_file(). */
	struct linux_file_known mapped[2];
	uint64_t inode[2], low[2], top[2];
};

static inline uint64_t lf_dentry(struct lm *g, uint64_t parent, const char *name, uint64_t inode)
{
	uint64_t d = lm_alloc(g, LF_DENTRY_SIZE, 64), bucket = lm_alloc(g, 8, 8);
	uint64_t s = lm_alloc(g, strlen(name) + 1, 1), p = d + LF_DENTRY_PARENT;

	memcpy(lm_ptr(g, s, strlen(name) + 1), name, strlen(name) + 1);
	lm_put64(g, bucket, (d + LF_DENTRY_PARENT - 16) | 1); /* its lock is held */
	lm_put64(g, p - 8, parent ? bucket : 0);
	lm_put64(g, p, parent ? parent : d);
	lm_put32(g, p + 8, 0x1234567);
	lm_put32(g, p + 12, (uint32_t)strlen(name));
	lm_put64(g, p + 16, s);
	lm_put64(g, p + 24, inode);
	return d;
}

static inline uint64_t lf_file(struct lm *g, uint64_t mnt, uint64_t parent, const char *name,
			       uint64_t *dentry)
{
	uint64_t inode = lm_alloc(g, LF_INODE_SIZE, 64), f = lm_alloc(g, LF_FILE_SIZE, 8);

	lm_put64(g, inode + LF_INODE_MAPPING, inode + LF_INODE_DATA);
	lm_put64(g, inode + LF_INODE_DATA, inode);
	*dentry = lf_dentry(g, parent, name, inode);
	lm_put64(g, f + LF_FILE_MNT, mnt);
	lm_put64(g, f + LF_FILE_MNT + 8, *dentry);
	lm_put64(g, f + LF_FILE_INODE, inode);
	lm_put64(g, f + LF_FILE_MAPPING, inode + LF_INODE_DATA);
	return f;
}

struct lf_vma {
	uint64_t start, pages;
	uint64_t flags;
	uint64_t pgoff; /* UINT64_MAX: derived from the address */
	int file;	/* -1: none */
};

static inline void lf_process(struct lm *g, struct lf *s, size_t k)
{
	const uint64_t slide = k * 0x123000, vdso = UINT64_C(0x7fff00008000) + slide;
	const struct lf_vma v[LF_VMAS] = {
		{ UINT64_C(0x550000000000), 2, 0x71, 0, 0 },
		{ UINT64_C(0x550000002000), 1, 0x75, 2, 0 },
		{ UINT64_C(0x550000003000), 1, 0x73, 3, 0 },
		{ UINT64_C(0x550000010000), 33, 0x73, UINT64_MAX, -1 },
		{ UINT64_C(0x7f0000000000), 38, 0x71, 0, 1 },
		{ UINT64_C(0x7f0000026000), 342, 0x75, 38, 1 },
		{ UINT64_C(0x7f0000180000), 2, 0x73, 400, 1 },
		{ UINT64_C(0x7f0000182000), 5, 0x73, UINT64_MAX, -1 },
		{ UINT64_C(0x7f0000200000), 1, 0xff, 0, 2 },
		{ UINT64_C(0x7fff00000000), 8, 0x100173, UINT64_C(0x7ffffffde), -1 },
		{ UINT64_C(0x7fff00008000), 1, 0x75, 0, -1 },
	};
	struct lm_range r[2 * LF_VMAS + 1];
	uint64_t mm = lm_alloc(g, LF_MM_SIZE, 64), end = 0, pgd = lm_alloc(g, 4096, 8192);
	size_t n = 0;

	for (size_t i = 0; i < LF_VMAS; i++) {
		uint64_t at = s->vma[k][i] = lm_alloc(g, LF_VMA_SIZE, 8),
			 start = v[i].start + slide;

		lm_put64(g, at + LF_VMA_START, start);
		lm_put64(g, at + LF_VMA_END, start + v[i].pages * 4096);
		lm_put64(g, at + LF_VMA_MM, mm);
		lm_put64(g, at + LF_VMA_FLAGS, v[i].flags);
		lm_put64(g, at + LF_VMA_PGOFF, v[i].pgoff == UINT64_MAX ? start >> 12 : v[i].pgoff);
		lm_put64(g, at + LF_VMA_FILE, v[i].file < 0 ? 0 : s->file[v[i].file]);
		if (start > end)
			r[n++] = (struct lm_range){ start - 1, 0 };
		end = start + v[i].pages * 4096;
		r[n++] = (struct lm_range){ end - 1, at };
	}
	r[n++] = (struct lm_range){ UINT64_MAX, 0 };
	lm_put64(g, mm + LF_MM_ROOT, lm_tree(g, r, n, 12, 10, LM_MAPLE_ARANGE));
	lm_put64(g, pgd + 8 * 273, 0x1067);
	lm_put64(g, pgd + 8 * 511, 0x2067);
	lm_put64(g, mm + LF_MM_PGD, pgd);
	lm_put64(g, mm + LF_MM_AUXV, 33);
	lm_put64(g, mm + LF_MM_AUXV + 8, vdso);
	lm_put64(g, mm + LF_MM_VDSO, vdso);
	lm_put64(g, mm + LF_MM_VDSO + 8, s->image);
	s->known[k] = (struct linux_mm_known){ mm, pgd - LM_DIRECT };
}

static inline struct lf lf_scene(struct lm *g)
{
	uint64_t data = lm_alloc(g, 4096, 4096), mount = lm_alloc(g, 64, 8), bin, lib;
	struct lf s = { .mnt = mount + 32 };

	memcpy(lm_ptr(g, data, 4), "\177ELF", 4);
	s.image = lm_alloc(g, 16, 8);
	lm_put64(g, s.image, data);
	lm_put64(g, s.image + 8, 4096);
	s.root = lf_dentry(g, 0, "/", 0);
	lm_put64(g, mount + 16, mount);
	lm_put64(g, mount + 24, s.root);
	lm_put64(g, mount + 32, s.root);
	bin = lf_dentry(g, s.root, "bin", 0);
	lib = lf_dentry(g, s.root, "lib", 0);
	s.file[0] = lf_file(g, s.mnt, bin, "worker", &s.dentry[0]);
	s.file[1] = lf_file(g, s.mnt, lib, "libc.so", &s.dentry[1]);
	s.file[2] = lf_file(g, s.mnt, 0, "memfd:jit", &s.dentry[2]);
	lf_process(g, &s, 0);
	lf_process(g, &s, 1);
	return s;
}

/* Stores a page of the file, with the bytes that the process has at va. */
static inline uint64_t lf_page(struct lm *g, uint64_t mapping, uint64_t index, uint64_t va)
{
	uint64_t at = lm_alloc(g, 4096, 4096), page = LM_VMEMMAP + ((at - LM_DIRECT) >> 12) * 64;

	memcpy(lm_ptr(g, at, 4096), g->user + (va - LM_USER), 4096);
	lm_put64(g, page, 1u << 2);
	lm_put64(g, page + 24, mapping);
	lm_put64(g, page + 32, index);
	return page;
}

/*
 * Stores two pages of an ELF file, which the process has as well; its array has two levels or one.
 */
static inline void lf_elf_file(struct lm *g, struct lf *s, size_t i, bool levels)
{
	uint64_t va = LM_USER + i * 0x2000, as;
	Elf64_Ehdr h = { .e_shoff = 0x5000 + i * 64, .e_shnum = 3, .e_shentsize = 64 };

	memcpy(h.e_ident, ELFMAG, SELFMAG);
	h.e_ident[EI_CLASS] = ELFCLASS64;
	memset(g->user + i * 0x2000, 'a' + (int)i, 0x2000);
	memcpy(g->user + i * 0x2000, &h, sizeof(h));
	memcpy(&s->inode[i], lm_ptr(g, s->file[i] + LF_FILE_INODE, 8), 8);
	as = s->inode[i] + LF_INODE_DATA;
	lm_put64(g, s->inode[i] + LF_SIZE, h.e_shoff + 3 * 64);

	s->low[i] = lm_alloc(g, 40 + 64 * 8, 64);
	s->top[i] = lm_alloc(g, 40 + 64 * 8, 64);
	*lm_ptr(g, s->top[i], 1) = 6;
	lm_put64(g, s->top[i] + 40, s->low[i] + 2);
	lm_put64(g, as + LF_HEAD, (levels ? s->top[i] : s->low[i]) + 2);
	lm_put64(g, s->low[i] + 40, lf_page(g, as, 0, va));
	lm_put64(g, s->low[i] + 48, lf_page(g, as, 1, va + 4096));
	s->mapped[i] = (struct linux_file_known){
		.vma = { .start = va, .end = va + 0x2000, .file = s->file[i] }, .space = LM_CR3
	};
}

#endif

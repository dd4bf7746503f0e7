/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest kernel's mappings, directories and page cache, built in one array.
 *
 * The layout of the structures differs from every Linux, so that only code that uses the types
 * finds them. Physical memory is the arena; the direct map and struct pages are where a kernel
 * without randomised memory has them.
 */
#ifndef KVMPROF_TESTS_LINUX_MM_FIXTURE_H
#define KVMPROF_TESTS_LINUX_MM_FIXTURE_H

#include "symbolizer/linux/file.h"
#include "symbolizer/linux/mm.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define LM_DIRECT UINT64_C(0xffff888000000000)
#define LM_VMEMMAP UINT64_C(0xffffea0000000000)
#ifndef LM_ARENA /* a multiple of 4096; an including file may need more */
#define LM_ARENA (128u << 10)
#endif
#define LM_PAGE_SIZE 64u /* size of a struct page */
#define LM_USER UINT64_C(0x7f0000000000)
#define LM_CR3 UINT64_C(0x1000)

struct lm {
	uint8_t arena[LM_ARENA];
	uint8_t pages[LM_ARENA / 4096 * LM_PAGE_SIZE];
	uint8_t user[4 * 4096]; /* at LM_USER in LM_CR3 */
	size_t used;
	uint64_t reads;
};

static size_t lm_copy(const uint8_t *from, uint64_t base, size_t size, uint64_t va, void *dst,
		      size_t len)
{
	if (va < base || va - base >= size)
		return 0;
	if (len > size - (va - base))
		len = size - (va - base);
	memcpy(dst, from + (va - base), len);
	return len;
}

static size_t lm_read(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	struct lm *g = ctx;
	size_t n;

	g->reads++;
	if (space == LM_CR3)
		return lm_copy(g->user, LM_USER, sizeof(g->user), va, dst, len);
	if (space != MEMORY_KERNEL)
		return 0;
	n = lm_copy(g->arena, LM_DIRECT, sizeof(g->arena), va, dst, len);
	return n ? n : lm_copy(g->pages, LM_VMEMMAP, sizeof(g->pages), va, dst, len);
}

static inline struct memory lm_memory(struct lm *g)
{
	return (struct memory){ lm_read, g };
}

static uint8_t *lm_ptr(struct lm *g, uint64_t va, size_t len)
{
	if (va >= LM_VMEMMAP) {
		assert(va - LM_VMEMMAP + len <= sizeof(g->pages));
		return g->pages + (va - LM_VMEMMAP);
	}
	assert(va >= LM_DIRECT && va - LM_DIRECT + len <= sizeof(g->arena));
	return g->arena + (va - LM_DIRECT);
}

static inline void lm_put64(struct lm *g, uint64_t va, uint64_t v)
{
	memcpy(lm_ptr(g, va, 8), &v, 8);
}

static inline void lm_put32(struct lm *g, uint64_t va, uint32_t v)
{
	memcpy(lm_ptr(g, va, 4), &v, 4);
}

static inline uint64_t lm_alloc(struct lm *g, size_t size, size_t align)
{
	size_t at = (g->used + align - 1) & ~(align - 1);

	assert(at + size <= LM_ARENA);
	g->used = at + size;
	return LM_DIRECT + at;
}

/* -- types ---------------------------------------------------------------------- */

struct lm_member {
	const char *structure, *path;
	uint32_t off, size;
};

static const struct lm_member lm_members[] = {
	{ "mm_struct", "map_count", 4, 4 },
	{ "mm_struct", "pgd", 8, 8 },
	{ "mm_struct", "context.vdso", 16, 8 },
	{ "mm_struct", "context.vdso_image", 24, 8 },
	{ "mm_struct", "mm_mt", 32, 16 },
	{ "mm_struct", "mm_mt.ma_root", 40, 8 },
	{ "mm_struct", "mmap", 48, 8 },
	{ "mm_struct", "vmacache_seqnum", 56, 4 },
	{ "vdso_image", "data", 8, 8 },
	{ "vdso_image", "size", 0, 8 },
	{ "vm_area_struct", "vm_next", 0, 8 },
	{ "vm_area_struct", "vm_mm", 8, 8 },
	{ "vm_area_struct", "vm_end", 16, 8 },
	{ "vm_area_struct", "vm_start", 24, 8 },
	{ "vm_area_struct", "vm_file", 32, 8 },
	{ "vm_area_struct", "vm_flags", 48, 8 },
	{ "vm_area_struct", "vm_pgoff", 56, 8 },
	{ "file", "f_mode", 0, 4 },
	{ "file", "f_inode", 8, 8 },
	{ "file", "f_path.dentry", 16, 8 },
	{ "file", "f_path.mnt", 24, 8 },
	{ "file", "f_mapping", 32, 8 },
	{ "backing_file", "user_path.dentry", 40, 8 },
	{ "backing_file", "user_path.mnt", 48, 8 },
	{ "dentry", "d_name.name", 0, 8 },
	{ "dentry", "d_name.len", 8, 4 },
	{ "dentry", "d_parent", 16, 8 },
	{ "dentry", "d_hash.pprev", 24, 8 },
	{ "mount", "mnt_mountpoint", 0, 8 },
	{ "mount", "mnt_parent", 8, 8 },
	{ "mount", "mnt", 24, 16 },
	{ "vfsmount", "mnt_root", 8, 8 },
	{ "inode", "i_sb", 0, 8 },
	{ "inode", "i_ino", 8, 8 },
	{ "inode", "i_size", 16, 8 },
	{ "inode", "i_generation", 24, 4 },
	{ "inode", "__i_mtime.tv_sec", 32, 8 },
	{ "inode", "__i_mtime.tv_nsec", 40, 8 },
	{ "super_block", "s_dev", 4, 4 },
	/* Nodes are as in Linux: the place of a dead node's parent is fixed. */
	{ "maple_range_64", "pivot", 8, 15 * 8 },
	{ "maple_range_64", "slot", 128, 16 * 8 },
	{ "maple_range_64", "meta.end", 248, 1 },
	{ "maple_arange_64", "pivot", 8, 9 * 8 },
	{ "maple_arange_64", "slot", 80, 10 * 8 },
	{ "maple_arange_64", "meta.end", 240, 1 },
	{ "address_space", "host", 8, 8 },
	{ "address_space", "i_pages.xa_head", 16, 8 },
	{ "xa_node", "shift", 3, 1 },
	{ "xa_node", "slots", 16, 64 * 8 },
	{ "page", "flags", 0, 8 },
	{ "page", "compound_head", 8, 8 },
	{ "page", "compound_info", 8, 8 },
	{ "folio", "mapping", 24, 8 },
	{ "folio", "index", 40, 8 },
};

/* "structure.path" of members that are missing, or have another size. */
struct lm_types {
	const char *without[4];
	const char *odd;
	bool damaged;
};

static inline bool lm_is(const char *name, const struct lm_member *m)
{
	size_t n = strlen(m->structure);

	return name && !strncmp(name, m->structure, n) && name[n] == '.' &&
	       !strcmp(name + n + 1, m->path);
}

static int lm_member(void *ctx, const char *structure, const char *path, struct type_member *out)
{
	const struct lm_types *t = ctx;

	if (t->damaged)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(lm_members) / sizeof(lm_members[0]); i++) {
		const struct lm_member *m = &lm_members[i];
		bool there = true;

		if (strcmp(m->structure, structure) != 0 || strcmp(m->path, path) != 0)
			continue;
		for (size_t k = 0; k < 4; k++)
			there = there && !lm_is(t->without[k], m);
		if (!there)
			return -ENOENT;
		*out = (struct type_member){ .off = m->off, .size = m->size };
		if (lm_is(t->odd, m))
			out->size += 3;
		return 0;
	}
	return -ENOENT;
}

static int lm_size(void *ctx, const char *structure, uint64_t *out)
{
	(void)ctx;
	if (strcmp(structure, "page") != 0)
		return -ENOENT;
	*out = LM_PAGE_SIZE;
	return 0;
}

static int lm_enumerator(void *ctx, const char *name, int64_t *out)
{
	(void)ctx;
	if (strcmp(name, "PG_uptodate") != 0)
		return -ENOENT;
	*out = 5;
	return 0;
}

static inline struct types lm_types(struct lm_types *t)
{
	return (struct types){ lm_member, lm_size, lm_enumerator, t };
}

/* Sets the layout, with the maple tree or without. */
static inline void lm_layout(struct linux_mm_layout *l, bool maple)
{
	struct lm_types list = { .without = { "mm_struct.mm_mt" } }, tree = { 0 };
	struct types t = lm_types(maple ? &tree : &list);
	int r = linux_mm_layout_init(l, &t, NULL);

	assert(r == 0);
	(void)r;
}

/* -- mappings -------------------------------------------------------------------- */

#define LM_MM_SIZE 64u
#define LM_VMA_SIZE 64u
#define LM_MAPLE_LEAF 1u
#define LM_MAPLE_RANGE 2u
#define LM_MAPLE_ARANGE 3u

static inline uint64_t lm_vma(struct lm *g, uint64_t mm, uint64_t start, uint64_t end,
			      uint64_t flags, uint64_t pgoff, uint64_t file)
{
	uint64_t v = lm_alloc(g, LM_VMA_SIZE, 8);

	lm_put64(g, v + 8, mm);
	lm_put64(g, v + 16, end);
	lm_put64(g, v + 24, start);
	lm_put64(g, v + 32, file);
	lm_put64(g, v + 48, flags);
	lm_put64(g, v + 56, pgoff);
	return v;
}

static inline void lm_list(struct lm *g, uint64_t mm, const uint64_t *vma, size_t n)
{
	lm_put64(g, mm + 48, n ? vma[0] : 0);
	for (size_t i = 0; i < n; i++)
		lm_put64(g, vma[i], i + 1 < n ? vma[i + 1] : 0);
	lm_put32(g, mm + 4, (uint32_t)n);
}

/* The range of a slot, and its contents. */
struct lm_range {
	uint64_t last, entry;
};

/* Makes a node of n slots, and returns the pointer to it. */
static inline uint64_t lm_node(struct lm *g, unsigned int type, const struct lm_range *r, size_t n)
{
	const size_t slots = type == LM_MAPLE_ARANGE ? 10 : 16;
	const uint64_t at = lm_alloc(g, 256, 256);

	assert(n && n <= slots);
	lm_put64(g, at, at + 0x12300); /* the parent: any value except this node */
	for (size_t i = 0; i < n; i++) {
		/* Every other last pivot is 0, because the kernel does both. */
		if (i + 1 < slots && (i + 1 < n || (at >> 8 & 1)))
			lm_put64(g, at + 8 + 8 * i, r[i].last);
		lm_put64(g, at + (type == LM_MAPLE_ARANGE ? 80 : 128) + 8 * i, r[i].entry);
	}
	if (type == LM_MAPLE_ARANGE)
		*lm_ptr(g, at + 240, 1) = (uint8_t)(n - 1);
	else if (n < slots)
		*lm_ptr(g, at + 248, 1) = (uint8_t)(n - 1);
	return at | type << 3 | 4;
}

/* Makes a tree over n slots that cover everything; nodes have at most `leaf` and `inner` slots. */
static inline uint64_t lm_tree(struct lm *g, struct lm_range *r, size_t n, size_t leaf,
			       size_t inner, unsigned int inner_type)
{
	unsigned int type = LM_MAPLE_LEAF;
	size_t fan = leaf;

	do {
		size_t made = 0;

		for (size_t i = 0; i < n; i += fan) {
			size_t k = n - i < fan ? n - i : fan;
			uint64_t node = lm_node(g, type, r + i, k);

			r[made++] = (struct lm_range){ r[i + k - 1].last, node };
		}
		n = made;
		type = inner_type;
		fan = inner;
	} while (n > 1);
	return r[0].entry | 2;
}

static inline void lm_maple(struct lm *g, uint64_t mm, const uint64_t *vma, size_t n, size_t leaf,
			    size_t inner, unsigned int inner_type)
{
	struct lm_range r[512];
	uint64_t end = 0;
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t start, stop;

		assert(k + 3 <= 512);
		memcpy(&stop, lm_ptr(g, vma[i] + 16, 8), 8);
		memcpy(&start, lm_ptr(g, vma[i] + 24, 8), 8);
		if (start > end)
			r[k++] = (struct lm_range){ start - 1, 0 };
		r[k++] = (struct lm_range){ stop - 1, vma[i] };
		end = stop;
	}
	r[k++] = (struct lm_range){ UINT64_MAX, 0 };
	lm_put64(g, mm + 40, lm_tree(g, r, k, leaf, inner, inner_type));
	lm_put32(g, mm + 4, (uint32_t)n);
}

/* -- directories ------------------------------------------------------------------ */

#define LM_MOUNT_MNT 24u

static inline uint64_t lm_dentry(struct lm *g, uint64_t parent, const char *name)
{
	uint64_t d = lm_alloc(g, 32, 8), s = lm_alloc(g, strlen(name) + 1, 1);

	memcpy(lm_ptr(g, s, strlen(name) + 1), name, strlen(name) + 1);
	lm_put64(g, d, s);
	lm_put32(g, d + 8, (uint32_t)strlen(name));
	lm_put64(g, d + 16, parent ? parent : d);
	lm_put64(g, d + 24, LM_DIRECT); /* hashed */
	return d;
}

/*
 * Makes the struct vfsmount of a mount on `on`, in the mount whose vfsmount is `parent` (0: the
 * top).
 */
static inline uint64_t lm_mount(struct lm *g, uint64_t root, uint64_t parent, uint64_t on)
{
	uint64_t m = lm_alloc(g, 48, 8);

	lm_put64(g, m, parent ? on : root);
	lm_put64(g, m + 8, parent ? parent - LM_MOUNT_MNT : m);
	lm_put64(g, m + LM_MOUNT_MNT + 8, root);
	return m + LM_MOUNT_MNT;
}

static inline uint64_t lm_inode(struct lm *g, uint64_t ino, uint64_t size)
{
	uint64_t i = lm_alloc(g, 48, 8), sb = lm_alloc(g, 8, 8);

	lm_put32(g, sb + 4, 0x800003);
	lm_put64(g, i, sb);
	lm_put64(g, i + 8, ino);
	lm_put64(g, i + 16, size);
	lm_put32(g, i + 24, 77);
	lm_put64(g, i + 32, 1700000000);
	lm_put64(g, i + 40, 999999999);
	return i;
}

static inline uint64_t lm_file(struct lm *g, uint64_t mnt, uint64_t dentry, uint64_t inode)
{
	uint64_t f = lm_alloc(g, 56, 8), as = lm_alloc(g, 24, 8);

	lm_put64(g, f + 8, inode);
	lm_put64(g, f + 16, dentry);
	lm_put64(g, f + 24, mnt);
	lm_put64(g, f + 32, as);
	lm_put64(g, as + 8, inode);
	return f;
}

/* -- the page cache ---------------------------------------------------------------- */

static inline uint64_t lm_mapping(struct lm *g, uint64_t file)
{
	uint64_t as;

	memcpy(&as, lm_ptr(g, file + 32, 8), 8);
	return as;
}

/* Adds a page of fill bytes to the file's mapping, and returns its struct page. */
static inline uint64_t lm_page(struct lm *g, uint64_t mapping, uint64_t index, int fill)
{
	uint64_t va = lm_alloc(g, 4096, 4096);
	uint64_t page = LM_VMEMMAP + ((va - LM_DIRECT) >> 12) * LM_PAGE_SIZE;

	memset(lm_ptr(g, va, 4096), fill, 4096);
	lm_put64(g, page, 1u << 5);
	lm_put64(g, page + 24, mapping);
	lm_put64(g, page + 40, index);
	return page;
}

static inline uint64_t lm_xa_node(struct lm *g, unsigned int shift)
{
	uint64_t n = lm_alloc(g, 16 + 64 * 8, 64);

	*lm_ptr(g, n + 3, 1) = (uint8_t)shift;
	return n;
}

static inline void lm_xa_slot(struct lm *g, uint64_t node, unsigned int slot, uint64_t entry)
{
	lm_put64(g, node + 16 + 8 * slot, entry);
}

/* -- a process with some of everything -------------------------------------------------------- */

struct lm_scene {
	uint64_t mm;
	uint64_t file; /* /usr/lib/a.so, of 5 pages and 100 bytes; page 3 is missing */
};

#define LM_SCENE_SIZE (5 * 4096u + 100)

static inline uint64_t lm_scene_file(struct lm *g, uint64_t mnt, uint64_t dir)
{
	uint64_t file = lm_file(g, mnt, lm_dentry(g, dir, "a.so"), lm_inode(g, 7, LM_SCENE_SIZE));
	uint64_t as = lm_mapping(g, file), top = lm_xa_node(g, 6), low = lm_xa_node(g, 0);
	uint64_t head, tail;

	lm_put64(g, as + 16, top + 2);
	lm_xa_slot(g, top, 0, low + 2);
	lm_xa_slot(g, low, 0, lm_page(g, as, 0, 'a'));
	lm_xa_slot(g, low, 1, head = lm_page(g, as, 1, 'b')); /* two pages in one entry */
	lm_xa_slot(g, low, 2, 1 << 2 | 2);
	tail = lm_page(g, 0, 0, 'c');
	lm_put64(g, tail + 8, head | 1);
	lm_xa_slot(g, low, 3, 0x123 << 1 | 1); /* swapped out */
	lm_xa_slot(g, low, 4, lm_page(g, as, 4, 'e'));
	lm_xa_slot(g, low, 5, lm_page(g, as, 5, 'f'));
	return file;
}

/* Makes 41 mappings; those with number % 4 == 1 are executable. */
static inline struct lm_scene lm_scene(struct lm *g, bool maple)
{
	uint64_t root = lm_dentry(g, 0, "/"), usr = lm_dentry(g, root, "usr");
	uint64_t top = lm_mount(g, root, 0, 0), below = lm_dentry(g, 0, "/");
	uint64_t mnt = lm_mount(g, below, top, usr);
	struct lm_scene s = { .mm = lm_alloc(g, LM_MM_SIZE, 8) };
	uint64_t memfd, vma[41];

	s.file = lm_scene_file(g, mnt, lm_dentry(g, below, "lib"));
	memfd = lm_file(g, top, lm_dentry(g, 0, "memfd:a/b"), lm_inode(g, 8, 4096));
	for (size_t i = 0; i < 41; i++) {
		uint64_t at = UINT64_C(0x400000) + i * 0x5000;

		vma[i] = lm_vma(g, s.mm, at, at + (i % 3 ? 0x3000 : 0x5000), i % 4 == 1 ? 5 : 3, i,
				i % 5 == 0 ? memfd
				: i % 2	   ? s.file
					   : 0);
	}
	lm_put64(g, s.mm + 16, UINT64_C(0x400000) + 13 * 0x5000);
	if (maple)
		lm_maple(g, s.mm, vma, 41, 7, 3, LM_MAPLE_ARANGE);
	else
		lm_list(g, s.mm, vma, 41);
	return s;
}

#endif

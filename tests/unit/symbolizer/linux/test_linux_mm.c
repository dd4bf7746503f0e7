/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/linux/mm_path.h"
#include "tests/unit/linux_mm_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct lm g;
static struct memory mem;
static struct linux_mm_layout list, tree;
static struct linux_vmas found;
static char path[LINUX_PATH_MAX];

static int setup(void **state)
{
	(void)state;
	memset(&g, 0, sizeof(g));
	mem = lm_memory(&g);
	lm_layout(&list, false);
	lm_layout(&tree, true);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	linux_vmas_deinit(&found);
	return 0;
}

/* -- layout ----------------------------------------------------------------------- */

static void test_layout_is_asked_for(void **state)
{
	struct lm_types without = { .without = { "vm_area_struct.vm_file" } };
	struct lm_types odd = { .odd = "mm_struct.map_count" }, damaged = { .damaged = true };
	struct linux_mm_layout l;
	struct types t = lm_types(&without);
	struct err e = { 0 };

	(void)state;
	assert_int_equal(linux_mm_layout_init(&l, &t, &e), -ENOENT);
	assert_non_null(strstr(e.text, "vm_file in struct vm_area_struct"));
	err_clear(&e);
	t = lm_types(&odd);
	assert_int_equal(linux_mm_layout_init(&l, &t, &e), -EINVAL);
	assert_non_null(strstr(e.text, "map_count has 7 bytes, expected 4"));
	t = lm_types(&damaged);
	assert_int_equal(linux_mm_layout_init(&l, &t, NULL), -EINVAL);
	assert_true(tree.maple);
	assert_int_equal(tree.mm_root, 40);
	assert_false(list.maple);
	assert_int_equal(list.mm_root, 48);
}

static void test_layout_does_without_what_is_young(void **state)
{
	struct lm_types young = { .without = { "backing_file.user_path.mnt", "__i_mtime.tv_sec",
					       "inode.__i_mtime.tv_sec",
					       "mm_struct.context.vdso" } };
	struct linux_mm_layout l;
	struct types t = lm_types(&young);

	(void)state;
	assert_int_equal(linux_mm_layout_init(&l, &t, NULL), 0);
	assert_int_equal(l.user_mnt, LINUX_NO_MEMBER);
	assert_int_equal(l.inode_mtime, LINUX_NO_MEMBER);
	assert_int_equal(linux_mm_vdso(&l, &mem, LM_DIRECT), 0);
}

/* Mappings do not need the page cache, nor the marks that distinguish files. */
static void test_layout_does_without_the_page_cache(void **state)
{
	struct lm_types without = { .without = { "file.f_mapping", "inode.i_size",
						 "super_block.s_dev", "mm_struct.map_count" } };
	struct types t = lm_types(&without);
	struct linux_file_id id;
	struct linux_mm_layout l;
	uint64_t file = lm_file(&g, 0, 0, lm_inode(&g, 42, 12345));

	(void)state;
	assert_int_equal(linux_mm_layout_init(&l, &t, NULL), 0);
	assert_int_equal(l.file_mapping, LINUX_NO_MEMBER);
	assert_int_equal(linux_file_identify(&l, &mem, file, &id), LINUX_OK);
	assert_int_equal(id.ino, 42);
	assert_int_equal(id.size, 0);
	assert_int_equal(id.dev, 0);
}

static void test_layout_refuses_odd_nodes(void **state)
{
	struct lm_types odd = { .odd = "maple_arange_64.meta.end" };
	struct types t = lm_types(&odd);
	struct linux_mm_layout l;

	(void)state;
	assert_int_equal(linux_mm_layout_init(&l, &t, NULL), -EINVAL);
}

/* -- mappings ----------------------------------------------------------------------- */

/* n mappings of one page, with a hole behind every third. */
static uint64_t make_vmas(uint64_t *vma, size_t n)
{
	uint64_t mm = lm_alloc(&g, LM_MM_SIZE, 8), at = 0x10000;

	for (size_t i = 0; i < n; i++) {
		vma[i] = lm_vma(&g, mm, at, at + 4096, i % 2 ? 5 : 1, i, 0);
		at += i % 3 == 2 ? 8192 : 4096;
	}
	return mm;
}

static void expect_vmas(const struct linux_mm_layout *l, uint64_t mm, size_t n)
{
	assert_int_equal(linux_mm_vmas(l, &mem, mm, 0, &found), LINUX_OK);
	assert_int_equal(found.n, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(found.v[i].start, 0x10000 + (i + i / 3) * 4096);
		assert_int_equal(found.v[i].end, found.v[i].start + 4096);
	}
	assert_int_equal(linux_mm_vmas(l, &mem, mm, LINUX_VM_EXEC, &found), LINUX_OK);
	assert_int_equal(found.n, n / 2);
}

static void test_list(void **state)
{
	uint64_t vma[50], mm = make_vmas(vma, 50);

	(void)state;
	lm_list(&g, mm, vma, 50);
	expect_vmas(&list, mm, 50);
	lm_list(&g, mm, vma, 0);
	expect_vmas(&list, mm, 0);
}

/* Nodes full, nearly full and of few slots; one to four levels; both kinds inside. */
static void test_maple_of_all_shapes(void **state)
{
	static const size_t shape[][3] = { { 1, 16, 10 }, { 9, 16, 10 },  { 11, 16, 10 },
					   { 12, 16, 2 }, { 50, 16, 10 }, { 50, 15, 9 },
					   { 50, 14, 3 }, { 50, 2, 16 },  { 50, 5, 3 },
					   { 50, 9, 2 },  { 100, 3, 4 } };

	(void)state;
	for (size_t i = 0; i < sizeof(shape) / sizeof(shape[0]); i++)
		for (unsigned int type = LM_MAPLE_RANGE; type <= LM_MAPLE_ARANGE; type++) {
			size_t inner = shape[i][2];
			uint64_t vma[100], mm;

			memset(&g, 0, sizeof(g));
			mm = make_vmas(vma, shape[i][0]);
			if (type == LM_MAPLE_ARANGE && inner > 10)
				inner = 10;
			lm_maple(&g, mm, vma, shape[i][0], shape[i][1], inner, type);
			expect_vmas(&tree, mm, shape[i][0]);
		}
}

static void test_empty_maple(void **state)
{
	uint64_t mm = lm_alloc(&g, LM_MM_SIZE, 8);

	(void)state;
	expect_vmas(&tree, mm, 0);
	lm_put64(&g, mm + 40, LM_DIRECT + 0x800); /* an entry for address 0 */
	assert_int_equal(linux_mm_vmas(&tree, &mem, mm, 0, &found), LINUX_CHANGING);
}

static void test_maple_with_reserved_slot(void **state)
{
	uint64_t vma[2], mm = make_vmas(vma, 2);
	struct lm_range r[] = {
		{ 0xffff, 0 }, { 0x10fff, vma[0] }, { 0x11fff, 0x406 }, { UINT64_MAX, 0 }
	};

	(void)state;
	lm_put64(&g, mm + 40, lm_node(&g, LM_MAPLE_LEAF, r, 4) | 2);
	lm_put32(&g, mm + 4, 1);
	assert_int_equal(linux_mm_vmas(&tree, &mem, mm, 0, &found), LINUX_OK);
	assert_int_equal(found.n, 1);
}

static void test_find(void **state)
{
	uint64_t vma[50], mm = make_vmas(vma, 50);

	(void)state;
	lm_list(&g, mm, vma, 50);
	assert_int_equal(linux_mm_vmas(&list, &mem, mm, 0, &found), LINUX_OK);
	assert_null(linux_vmas_find(&found, 0xffff));
	assert_ptr_equal(linux_vmas_find(&found, 0x10000), &found.v[0]);
	assert_ptr_equal(linux_vmas_find(&found, 0x12fff), &found.v[2]);
	assert_null(linux_vmas_find(&found, 0x13000)); /* the hole */
	assert_ptr_equal(linux_vmas_find(&found, 0x14000), &found.v[3]);
	assert_null(linux_vmas_find(&found, UINT64_MAX));
}

/* One mapping by its address, as all of them have it. */
static void test_lookup(void **state)
{
	uint64_t vma[50], mm = make_vmas(vma, 50);
	struct linux_vma one;

	(void)state;
	lm_list(&g, mm, vma, 50);
	assert_int_equal(linux_mm_lookup(&list, &mem, mm, 0x10000, &one), LINUX_UNKNOWN);
	for (size_t leaf = 2; leaf < 16; leaf += 3) {
		lm_maple(&g, mm, vma, 50, leaf, 3, LM_MAPLE_ARANGE);
		assert_int_equal(linux_mm_vmas(&tree, &mem, mm, 0, &found), LINUX_OK);
		for (uint64_t va = 0; va < found.v[49].end + 0x3000; va += 0x1000) {
			const struct linux_vma *v = linux_vmas_find(&found, va);
			enum linux_why why = linux_mm_lookup(&tree, &mem, mm, va, &one);

			assert_int_equal(why, v ? LINUX_OK : LINUX_NOT_THERE);
			if (!v)
				continue;
			assert_true(v->start == one.start && v->end == one.end && v->at == one.at &&
				    v->file == one.file && v->file_off == one.file_off);
		}
	}
	lm_put64(&g, mm + 40, 0);
	assert_int_equal(linux_mm_lookup(&tree, &mem, mm, 0x10000, &one), LINUX_NOT_THERE);
	lm_put64(&g, mm + 40, LM_DIRECT);
	assert_int_equal(linux_mm_lookup(&tree, &mem, mm, 0x10000, &one), LINUX_CHANGING);
	lm_put64(&g, mm + 40, UINT64_C(0xffffc90000000000) | LM_MAPLE_LEAF << 3 | 6);
	assert_int_equal(linux_mm_lookup(&tree, &mem, mm, 0x10000, &one), LINUX_UNREADABLE);
}

/* Each of these makes the seventh VMA invalid; the six before it are still returned. */
static void test_vmas_that_cannot_be(void **state)
{
	static const struct {
		uint32_t off;
		uint64_t v;
	} bad[] = {
		{ 8, LM_DIRECT + 8 },	   /* belongs to another process */
		{ 16, 0 },		   /* ends before it starts */
		{ 16, 0x17001 },	   /* ends inside a page */
		{ 24, 0x10000 },	   /* overlaps */
		{ 16, UINT64_C(1) << 60 }, /* reaches into the kernel */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		for (int maple = 0; maple < 2; maple++) {
			uint64_t vma[12], mm;

			memset(&g, 0, sizeof(g));
			mm = make_vmas(vma, 12);
			lm_list(&g, mm, vma, 12);
			lm_maple(&g, mm, vma, 12, 4, 3, LM_MAPLE_ARANGE);
			lm_put64(&g, vma[6] + bad[i].off, bad[i].v);
			assert_int_equal(linux_mm_vmas(maple ? &tree : &list, &mem, mm, 0, &found),
					 LINUX_CHANGING);
			assert_int_equal(found.n, 6);
		}
}

static void test_wrong_number_of_vmas(void **state)
{
	uint64_t vma[12], mm = make_vmas(vma, 12);

	(void)state;
	lm_list(&g, mm, vma, 12);
	lm_put32(&g, mm + 4, 13);
	assert_int_equal(linux_mm_vmas(&list, &mem, mm, 0, &found), LINUX_CHANGING);
	assert_int_equal(found.n, 12);
}

static void test_list_in_a_circle(void **state)
{
	uint64_t vma[12], mm = make_vmas(vma, 12);

	(void)state;
	lm_list(&g, mm, vma, 12);
	lm_put64(&g, vma[11], vma[0]);
	assert_int_equal(linux_mm_vmas(&list, &mem, mm, 0, &found), LINUX_CHANGING);
	assert_int_equal(found.n, 12);
	lm_put64(&g, vma[11], UINT64_C(0xffffffff00000000));
	assert_int_equal(linux_mm_vmas(&list, &mem, mm, 0, &found), LINUX_UNREADABLE);
	lm_put64(&g, vma[11], vma[0] + 1);
	assert_int_equal(linux_mm_vmas(&list, &mem, mm, 0, &found), LINUX_CHANGING);
	lm_put64(&g, vma[11], 0x1000); /* user space, where the guest may have put anything */
	assert_int_equal(linux_mm_vmas(&list, &mem, mm, 0, &found), LINUX_CHANGING);
}

static void test_maple_nodes_that_cannot_be(void **state)
{
	uint64_t vma[9], mm = make_vmas(vma, 9), root, at;

	(void)state;
	lm_maple(&g, mm, vma, 9, 16, 10, LM_MAPLE_ARANGE);
	memcpy(&root, lm_ptr(&g, mm + 40, 8), 8);
	at = root & ~UINT64_C(255);

	lm_put64(&g, mm + 40, at | 2 | 4); /* dense */
	assert_int_equal(linux_mm_vmas(&tree, &mem, mm, 0, &found), LINUX_UNKNOWN);
	lm_put64(&g, mm + 40, at | 9 << 3 | 2 | 4); /* from the future */
	assert_int_equal(linux_mm_vmas(&tree, &mem, mm, 0, &found), LINUX_UNKNOWN);
	lm_put64(&g, mm + 40, (0x5000 | LM_MAPLE_LEAF << 3) | 2 | 4);
	assert_int_equal(linux_mm_vmas(&tree, &mem, mm, 0, &found), LINUX_CHANGING);

	lm_put64(&g, mm + 40, root);
	lm_put64(&g, at, at); /* dead */
	assert_int_equal(linux_mm_vmas(&tree, &mem, mm, 0, &found), LINUX_CHANGING);
	lm_put64(&g, at, 0);
	assert_int_equal(linux_mm_vmas(&tree, &mem, mm, 0, &found), LINUX_OK);
	lm_put64(&g, at + 8 + 8 * 3, 5); /* a pivot below the one before */
	assert_int_equal(linux_mm_vmas(&tree, &mem, mm, 0, &found), LINUX_CHANGING);
}

static void test_maple_in_a_circle(void **state)
{
	struct lm_range r[] = { { 0xfff, 0 }, { UINT64_MAX, 0 } };
	uint64_t mm = lm_alloc(&g, LM_MM_SIZE, 8), node = lm_node(&g, LM_MAPLE_ARANGE, r, 2);
	uint64_t at = node & ~UINT64_C(255);

	(void)state;
	lm_put64(&g, mm + 40, node | 2);
	assert_int_equal(linux_mm_vmas(&tree, &mem, mm, 0, &found),
			 LINUX_CHANGING); /* NULL child */
	lm_put64(&g, at + 80, node);
	assert_int_equal(linux_mm_vmas(&tree, &mem, mm, 0, &found), LINUX_TOO_MANY);
	assert_true(g.reads < 1000);
	*lm_ptr(&g, at + 240, 1) = 0; /* one slot, itself: as deep as one likes */
	assert_int_equal(linux_mm_vmas(&tree, &mem, mm, 0, &found), LINUX_TOO_MANY);
	*lm_ptr(&g, at + 240, 1) = 255; /* more slots than there are */
	lm_put64(&g, at + 80, node + 1);
	assert_int_equal(linux_mm_vmas(&tree, &mem, mm, 0, &found), LINUX_CHANGING);
}

/* A list without end: each VMA is made when it is read. */
#define ENDLESS UINT64_C(0xffffc90000000000)

static size_t endless_list(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	uint64_t i = (va - ENDLESS) / LM_VMA_SIZE, raw[8] = { 0 };

	(*(uint64_t *)ctx)++;
	if (space != MEMORY_KERNEL || va < ENDLESS || len > sizeof(raw))
		return 0;
	if (va == ENDLESS + list.mm_root) {
		raw[0] = ENDLESS + LM_VMA_SIZE;
	} else {
		raw[0] = va + LM_VMA_SIZE;
		raw[1] = ENDLESS;
		raw[2] = (i + 1) * 4096;
		raw[3] = i * 4096;
	}
	memcpy(dst, raw, len);
	return len;
}

static void test_too_many_vmas(void **state)
{
	uint64_t reads = 0;
	struct memory m = { endless_list, &reads };

	(void)state;
	assert_int_equal(linux_mm_vmas(&list, &m, ENDLESS, 0, &found), LINUX_TOO_MANY);
	assert_int_equal(found.n, LINUX_MM_MAX_VMAS);
	assert_int_equal(linux_mm_vmas(&list, &m, ENDLESS, LINUX_VM_EXEC, &found), LINUX_TOO_MANY);
	assert_int_equal(found.n, 0);
	assert_true(reads < 3 * LINUX_MM_MAX_VMAS);
}

/* A tree of 111,111 nodes in six levels that holds nothing. Node (level, i) is made when read. */
static size_t endless_tree(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	uint64_t level = (va - ENDLESS) >> 32, i = (va & UINT32_MAX) >> 8, node[32] = { 0 };
	uint64_t width = 4096;

	(*(uint64_t *)ctx)++;
	if (space != MEMORY_KERNEL || va < ENDLESS || level > 6 || len > sizeof(node))
		return 0;
	for (uint64_t l = level; l < 5; l++)
		width *= 10;
	if (!level) {
		node[0] = (ENDLESS + (UINT64_C(1) << 32)) | LM_MAPLE_ARANGE << 3 | 6;
	} else if (level < 6) {
		for (uint64_t k = 0; k < 10; k++) {
			if (k < 9)
				node[1 + k] = (i * 10 + k + 1) * width - 1;
			node[10 + k] = (ENDLESS + ((level + 1) << 32) + ((i * 10 + k) << 8)) |
				       (level == 5 ? LM_MAPLE_LEAF : LM_MAPLE_ARANGE) << 3 | 4;
		}
		node[30] = 9;
	}
	memcpy(dst, node, len);
	return len;
}

static void test_too_many_nodes(void **state)
{
	uint64_t reads = 0;
	struct memory m = { endless_tree, &reads };

	(void)state;
	assert_int_equal(linux_mm_vmas(&tree, &m, ENDLESS, 0, &found), LINUX_TOO_MANY);
	assert_true(reads > LINUX_MM_MAX_NODES && reads < LINUX_MM_MAX_NODES + 10);
}

/* -- paths ------------------------------------------------------------------------- */

static uint64_t top, root_dentry;

static void make_root(void)
{
	root_dentry = lm_dentry(&g, 0, "/");
	top = lm_mount(&g, root_dentry, 0, 0);
}

static void expect_path(uint64_t mnt, uint64_t dentry, const char *expected)
{
	uint64_t f = lm_file(&g, mnt, dentry, 0);

	assert_int_equal(linux_file_path(&tree, &mem, f, path), LINUX_OK);
	assert_string_equal(path, expected);
}

static void expect_no_path(uint64_t mnt, uint64_t dentry, enum linux_why why)
{
	uint64_t f = lm_file(&g, mnt, dentry, 0);

	assert_int_equal(linux_file_path(&tree, &mem, f, path), why);
	assert_string_equal(path, "");
}

static void test_paths(void **state)
{
	uint64_t usr, lib, mnt, below;

	(void)state;
	make_root();
	usr = lm_dentry(&g, root_dentry, "usr");
	expect_path(top, root_dentry, "/");
	expect_path(top, usr, "/usr");
	expect_path(top, lm_dentry(&g, usr, "a b"), "/usr/a b");
	/* Two mounts on top of each other, the upper of a directory inside its file system. */
	below = lm_dentry(&g, 0, "/");
	mnt = lm_mount(&g, below, top, usr);
	lib = lm_dentry(&g, lm_dentry(&g, below, "x86"), "lib");
	expect_path(mnt, lib, "/usr/x86/lib");
	mnt = lm_mount(&g, lib, mnt, below);
	expect_path(mnt, lm_dentry(&g, lib, "c.so"), "/usr/c.so");
}

static void test_deleted_paths(void **state)
{
	uint64_t d;

	(void)state;
	make_root();
	d = lm_dentry(&g, lm_dentry(&g, root_dentry, "tmp"), "a.so");
	lm_put64(&g, d + 24, 0);
	expect_path(top, d, "/tmp/a.so (deleted)");
	expect_path(top, lm_dentry(&g, 0, "memfd:x/y"), "/memfd:x/y (deleted)");
	d = lm_dentry(&g, 0, "dev/zero"); /* never hashed */
	lm_put64(&g, d + 24, 0);
	expect_path(top, d, "/dev/zero (deleted)");
	/* A root isn't deleted, even when it was never hashed. */
	lm_put64(&g, root_dentry + 24, 0);
	expect_path(top, root_dentry, "/");
}

static void test_overlay_path(void **state)
{
	uint64_t low, shown, f;

	(void)state;
	make_root();
	low = lm_dentry(&g, root_dentry, "lower");
	shown = lm_dentry(&g, root_dentry, "shown");
	f = lm_file(&g, top, low, 0);
	lm_put64(&g, f + 40, shown);
	lm_put64(&g, f + 48, top);
	assert_int_equal(linux_file_path(&tree, &mem, f, path), LINUX_OK);
	assert_string_equal(path, "/lower");
	lm_put32(&g, f, 1u << 25);
	assert_int_equal(linux_file_path(&tree, &mem, f, path), LINUX_OK);
	assert_string_equal(path, "/shown");
}

static void test_names_that_cannot_be(void **state)
{
	uint64_t d;

	(void)state;
	make_root();
	d = lm_dentry(&g, root_dentry, "name");
	lm_put32(&g, d + 8, 3); /* the length of another name */
	expect_no_path(top, d, LINUX_CHANGING);
	lm_put32(&g, d + 8, 5);
	expect_no_path(top, d, LINUX_CHANGING);
	lm_put32(&g, d + 8, 0);
	expect_no_path(top, d, LINUX_CHANGING);
	lm_put32(&g, d + 8, UINT32_MAX);
	expect_no_path(top, d, LINUX_CHANGING);
	lm_put32(&g, d + 8, 4);
	lm_put64(&g, d, 0x1000);
	expect_no_path(top, d, LINUX_UNREADABLE);
	expect_no_path(top, lm_dentry(&g, root_dentry, "a/b"), LINUX_CHANGING);
	expect_no_path(top, 0, LINUX_UNREADABLE);
	expect_no_path(0, d, LINUX_UNREADABLE);
	/* A directory without parent under another mount: moved away while we looked. */
	expect_no_path(top, lm_dentry(&g, lm_dentry(&g, 0, "/"), "x"), LINUX_CHANGING);
}

static void test_paths_have_a_limit(void **state)
{
	uint64_t d, a, b;
	char name[256];

	(void)state;
	make_root();
	d = root_dentry;
	for (size_t i = 0; i < LINUX_PATH_MAX_DEPTH - 1; i++)
		d = lm_dentry(&g, d, "a");
	expect_path(top, lm_dentry(&g, root_dentry, "b"), "/b");
	assert_int_equal(linux_file_path(&tree, &mem, lm_file(&g, top, d, 0), path), LINUX_OK);
	assert_int_equal(strlen(path), 2 * (LINUX_PATH_MAX_DEPTH - 1));
	expect_no_path(top, lm_dentry(&g, d, "a"), LINUX_TOO_MANY);

	memset(name, 'n', 255);
	name[255] = '\0';
	d = root_dentry;
	for (size_t i = 0; i < 15; i++)
		d = lm_dentry(&g, d, name);
	name[254] = '\0';
	d = lm_dentry(&g, d, name); /* 15 * 256 + 255 bytes and the NUL: just fits */
	assert_int_equal(linux_file_path(&tree, &mem, lm_file(&g, top, d, 0), path), LINUX_OK);
	assert_int_equal(strlen(path), LINUX_PATH_MAX - 1);
	expect_no_path(top, lm_dentry(&g, d, "x"), LINUX_TOO_MANY);

	a = lm_dentry(&g, root_dentry, "a");
	b = lm_dentry(&g, a, "b");
	lm_put64(&g, a + 16, b);
	expect_no_path(top, b, LINUX_TOO_MANY);
}

static void test_mounts_in_a_circle(void **state)
{
	uint64_t a, b, da, db;

	(void)state;
	make_root();
	da = lm_dentry(&g, 0, "/");
	db = lm_dentry(&g, 0, "/");
	a = lm_mount(&g, da, top, root_dentry);
	b = lm_mount(&g, db, a, da);
	lm_put64(&g, a - LM_MOUNT_MNT, db);
	lm_put64(&g, a - LM_MOUNT_MNT + 8, b - LM_MOUNT_MNT);
	expect_no_path(a, lm_dentry(&g, da, "x"), LINUX_TOO_MANY);
}

static void test_names_of_mappings(void **state)
{
	struct lm_scene s = lm_scene(&g, true);

	(void)state;
	assert_int_equal(linux_mm_vmas(&tree, &mem, s.mm, LINUX_VM_EXEC, &found), LINUX_OK);
	assert_int_equal(found.n, 10);
	/* Mapping 5 is the memfd's, 13 has a file and lies where the vDSO is said to be. */
	assert_int_equal(linux_vma_name(&tree, &mem, s.mm, &found.v[0], path), LINUX_OK);
	assert_string_equal(path, "/usr/lib/a.so");
	assert_int_equal(found.v[0].file_off, 4096);
	assert_int_equal(linux_vma_name(&tree, &mem, s.mm, &found.v[1], path), LINUX_OK);
	assert_string_equal(path, "/memfd:a/b (deleted)");
	assert_int_equal(linux_vma_name(&tree, &mem, s.mm, &found.v[3], path), LINUX_OK);
	assert_string_equal(path, "/usr/lib/a.so");
	found.v[3].file = 0;
	assert_int_equal(linux_vma_name(&tree, &mem, s.mm, &found.v[3], path), LINUX_OK);
	assert_string_equal(path, "[vdso]");
	found.v[2].file = 0;
	assert_int_equal(linux_vma_name(&tree, &mem, s.mm, &found.v[2], path), LINUX_OK);
	assert_string_equal(path, "//anon");
}

static void test_identity(void **state)
{
	uint64_t inode, a, b;
	struct linux_file_id ia, ib;

	(void)state;
	make_root();
	inode = lm_inode(&g, 42, 12345);
	a = lm_file(&g, top, root_dentry, inode);
	b = lm_file(&g, top, lm_dentry(&g, root_dentry, "link"), inode);
	memset(&ia, 1, sizeof(ia));
	memset(&ib, 2, sizeof(ib));
	assert_int_equal(linux_file_identify(&tree, &mem, a, &ia), LINUX_OK);
	assert_int_equal(linux_file_identify(&tree, &mem, b, &ib), LINUX_OK);
	assert_memory_equal(&ia, &ib, sizeof(ia));
	assert_int_equal(ia.ino, 42);
	assert_int_equal(ia.size, 12345);
	assert_int_equal(ia.dev, 0x800003);
	assert_int_equal(ia.mtime_s, 1700000000);
	assert_int_equal(ia.mtime_ns, 999999999);
	assert_int_equal(ia.generation, 77);
	lm_put64(&g, a + 8, 0);
	assert_int_equal(linux_file_identify(&tree, &mem, a, &ia), LINUX_UNREADABLE);
	assert_memory_equal(&ia, &ib, sizeof(ia));
}

static void test_each_reason_has_a_text(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < LINUX_WHY_COUNT; i++)
		assert_true(strlen(linux_why_text((enum linux_why)i)) > 5);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_layout_is_asked_for),
		T(test_layout_does_without_what_is_young),
		T(test_layout_does_without_the_page_cache),
		T(test_layout_refuses_odd_nodes),
		T(test_list),
		T(test_maple_of_all_shapes),
		T(test_empty_maple),
		T(test_maple_with_reserved_slot),
		T(test_find),
		T(test_lookup),
		T(test_vmas_that_cannot_be),
		T(test_wrong_number_of_vmas),
		T(test_list_in_a_circle),
		T(test_maple_nodes_that_cannot_be),
		T(test_maple_in_a_circle),
		T(test_too_many_vmas),
		T(test_too_many_nodes),
		T(test_paths),
		T(test_deleted_paths),
		T(test_overlay_path),
		T(test_names_that_cannot_be),
		T(test_paths_have_a_limit),
		T(test_mounts_in_a_circle),
		T(test_names_of_mappings),
		T(test_identity),
		T(test_each_reason_has_a_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

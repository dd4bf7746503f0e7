/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/linux/mm_path.h"
#include "tests/unit/linux_find_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct lm g;
static struct lf s;
static struct memory mem;
static struct linux_mm_layout l;

static int setup(void **state)
{
	(void)state;
	memset(&g, 0, sizeof(g));
	memset(&l, 0x55, sizeof(l));
	mem = lm_memory(&g);
	s = lf_scene(&g);
	return 0;
}

static void expect_found(size_t n)
{
	struct err e = { 0 };

	if (linux_mm_layout_find(&l, &mem, s.known, n, &e) < 0)
		fail_msg("%s", e.text);
}

static void expect_refused(size_t n, const char *what)
{
	struct linux_mm_layout before = l;
	struct err e = { 0 };

	assert_int_equal(linux_mm_layout_find(&l, &mem, s.known, n, &e), -ENOENT);
	if (!strstr(e.text, what))
		fail_msg("\"%s\" isn't in \"%s\"", what, e.text);
	assert_memory_equal(&l, &before, sizeof(l));
}

static void test_all_is_found(void **state)
{
	(void)state;
	expect_found(2);
	assert_true(l.maple);
	assert_int_equal(l.mm_root, LF_MM_ROOT);
	assert_int_equal(l.mm_pgd, LF_MM_PGD);
	assert_int_equal(l.mm_vdso, LF_MM_VDSO);
	assert_int_equal(l.mm_vdso_image, LF_MM_VDSO + 8);
	assert_int_equal(l.image_data, 0);
	assert_int_equal(l.image_size, 8);
	assert_int_equal(l.mm_map_count, LINUX_NO_MEMBER);
	assert_int_equal(l.vma_start, LF_VMA_START);
	assert_int_equal(l.vma_end, LF_VMA_END);
	assert_int_equal(l.vma_mm, LF_VMA_MM);
	assert_int_equal(l.vma_flags, LF_VMA_FLAGS);
	assert_int_equal(l.vma_pgoff, LF_VMA_PGOFF);
	assert_int_equal(l.vma_file, LF_VMA_FILE);
	assert_int_equal(l.vma_span, LF_VMA_FILE + 8);
	assert_int_equal(l.file_mnt, LF_FILE_MNT);
	assert_int_equal(l.file_dentry, LF_FILE_MNT + 8);
	assert_int_equal(l.file_inode, LF_FILE_INODE);
	assert_int_equal(l.dentry_parent, LF_DENTRY_PARENT);
	assert_int_equal(l.inode_size, LINUX_NO_MEMBER);
}

static void test_what_was_found_is_of_use(void **state)
{
	static const char *const names[] = { "/bin/worker", "/lib/libc.so", "[vdso]" };
	char path[LINUX_PATH_MAX];
	struct linux_vmas v = { 0 };
	struct linux_file_id id;

	(void)state;
	expect_found(2);
	assert_int_equal(linux_mm_vmas(&l, &mem, s.known[1].mm, 0, &v), LINUX_OK);
	assert_int_equal(v.n, LF_VMAS);
	assert_int_equal(linux_vma_name(&l, &mem, s.known[1].mm, &v.v[8], path), LINUX_OK);
	assert_string_equal(path, "/memfd:jit (deleted)");
	assert_int_equal(linux_mm_vmas(&l, &mem, s.known[1].mm, LINUX_VM_READ | LINUX_VM_EXEC, &v),
			 LINUX_OK);
	assert_int_equal(v.n, 4);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(linux_vma_name(&l, &mem, s.known[1].mm, &v.v[i == 2 ? 3 : i],
						path),
				 LINUX_OK);
		assert_string_equal(path, names[i]);
	}
	assert_int_equal(linux_file_identify(&l, &mem, v.v[0].file, &id), LINUX_OK);
	assert_int_equal(id.size, 0);
	assert_true(id.inode > LM_DIRECT);
	linux_vmas_deinit(&v);
}

static void test_too_little_is_known(void **state)
{
	(void)state;
	expect_refused(0, "no maple tree");
	expect_refused(1, "no maple tree"); /* 11 mappings */
}

static void test_page_table(void **state)
{
	uint64_t pgd = LM_DIRECT + s.known[0].cr3;

	(void)state;
	s.known[0].cr3 |= 0x1001; /* isolated: the second page, with a context identifier */
	expect_found(2);
	assert_int_equal(l.mm_pgd, LF_MM_PGD);
	s.known[0].cr3 += 0x2000;
	expect_found(2);
	assert_int_equal(l.mm_pgd, LINUX_NO_MEMBER);
	s.known[0].cr3 = s.known[1].cr3 = 0;
	expect_found(2);
	assert_int_equal(l.mm_pgd, LF_MM_PGD);
	lm_put64(&g, pgd + 8 * 300, 0x3067); /* no page table of the same kernel */
	expect_found(2);
	assert_int_equal(l.mm_pgd, LINUX_NO_MEMBER);
	lm_put64(&g, pgd + 8 * 300, 0);
	for (size_t i = 0; i < 2; i++) /* two places, and nothing tells which */
		memcpy(lm_ptr(&g, s.known[i].mm + LF_MM_PGD + 8, 8),
		       lm_ptr(&g, s.known[i].mm + LF_MM_PGD, 8), 8);
	expect_found(2);
	assert_int_equal(l.mm_pgd, LINUX_NO_MEMBER);
}

static void test_vdso_without_image(void **state)
{
	(void)state;
	lm_put64(&g, s.image + 8, 4095);
	expect_found(2);
	assert_int_equal(l.mm_vdso, LF_MM_AUXV + 8);
	assert_int_equal(l.mm_vdso_image, LINUX_NO_MEMBER);
	lm_put64(&g, s.known[1].mm + LF_MM_AUXV, 32);
	expect_found(2);
	assert_int_equal(l.mm_vdso, LINUX_NO_MEMBER);
}

/* A word that occurs twice does not show which place is right. */
static void repeat(uint32_t from, uint32_t to)
{
	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < LF_VMAS; i++)
			memcpy(lm_ptr(&g, s.vma[k][i] + to, 8), lm_ptr(&g, s.vma[k][i] + from, 8),
			       8);
}

static void test_ambiguous_words(void **state)
{
	static const struct {
		uint32_t off;
		const char *what;
	} twice[] = {
		{ LF_VMA_START, "start, end and mm" }, { LF_VMA_END, "start, end and mm" },
		{ LF_VMA_MM, "start, end and mm" },    { LF_VMA_FLAGS, "vm_flags" },
		{ LF_VMA_PGOFF, "vm_pgoff" },	       { LF_VMA_FILE, "vm_file" },
	};

	for (size_t i = 0; i < sizeof(twice) / sizeof(twice[0]); i++) {
		setup(state);
		repeat(twice[i].off, 64);
		expect_refused(2, twice[i].what);
	}
	setup(state);
	for (size_t k = 0; k < 2; k++)
		memcpy(lm_ptr(&g, s.known[k].mm, 8), lm_ptr(&g, s.known[k].mm + LF_MM_ROOT, 8), 8);
	expect_refused(2, "no maple tree");
}

static void test_one_odd_mapping_is_enough(void **state)
{
	static const struct {
		uint32_t off;
		uint64_t v;
		const char *what;
	} odd[] = {
		{ LF_VMA_START, 0x1000, "start, end and mm" },
		{ LF_VMA_END, 0x1000, "start, end and mm" },
		{ LF_VMA_MM, LM_DIRECT, "start, end and mm" },
		{ LF_VMA_FLAGS, 0x05, "vm_flags" }, /* may not, but does */
		{ LF_VMA_PGOFF, UINT64_C(1) << 50, "vm_pgoff" },
		{ LF_VMA_FILE, 0x1234, "vm_file" },
	};

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		setup(state);
		lm_put64(&g, s.vma[1][3] + odd[i].off, odd[i].v);
		expect_refused(2, odd[i].what);
	}
}

/* Back pointers must be consistent, or only one object looks like a file. */
static void test_files_must_bear_each_other_out(void **state)
{
	uint64_t v;

	for (unsigned int i = 0; i < 6; i++) {
		uint64_t d, p, inode;

		setup(state);
		d = s.dentry[1];
		p = d + LF_DENTRY_PARENT;
		memcpy(&inode, lm_ptr(&g, p + 24, 8), 8);
		switch (i) {
		case 0:
			lm_put64(&g, p + 24, inode + 8); /* another's dentry */
			break;
		case 1:
			lm_put32(&g, p + 12, 6); /* not the name's length */
			break;
		case 2:
			memcpy(&v, lm_ptr(&g, p - 8, 8), 8);
			lm_put64(&g, v, d); /* the list has another member */
			break;
		case 3:
			lm_put64(&g, inode + LF_INODE_DATA, inode + 8); /* another's pages */
			break;
		case 4:
			lm_put64(&g, inode + LF_INODE_MAPPING, 0);
			break;
		default:
			lm_put64(&g, p, d); /* not below the mount's root */
			break;
		}
		expect_refused(2, "vm_file");
	}
}

#define T(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_all_is_found),
		T(test_what_was_found_is_of_use),
		T(test_too_little_is_known),
		T(test_page_table),
		T(test_vdso_without_image),
		T(test_ambiguous_words),
		T(test_one_odd_mapping_is_enough),
		T(test_files_must_bear_each_other_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

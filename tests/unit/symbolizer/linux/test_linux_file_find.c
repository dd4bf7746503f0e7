/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/linux_find_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct lm g;
static struct lf s;
static struct memory mem;
static struct symtab *symbols;
static struct linux_mm_layout mm;
static struct linux_file_layout l;

static void build(bool levels)
{
	struct err e = { 0 };

	memset(&g, 0, sizeof(g));
	memset(&l, 0x55, sizeof(l));
	mem = lm_memory(&g);
	s = lf_scene(&g);
	lf_elf_file(&g, &s, 0, levels);
	lf_elf_file(&g, &s, 1, false);
	if (linux_mm_layout_find(&mm, &mem, s.known, 2, &e) < 0)
		fail_msg("%s", e.text);
}

static int setup(void **state)
{
	(void)state;
	symbols = symtab_create();
	if (!symbols || symtab_freeze(symbols, NULL) < 0)
		return -1;
	build(true);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	symtab_destroy(symbols);
	return 0;
}

static void expect_refused(size_t n, const char *what)
{
	struct linux_file_layout before = l;
	struct err e = { 0 };

	assert_int_equal(linux_file_layout_find(&l, &mm, &mem, symbols,
						(struct linux_files_known){ s.mapped, n }, &e),
			 -ENOENT);
	if (!strstr(e.text, what))
		fail_msg("\"%s\" isn't in \"%s\"", what, e.text);
	assert_memory_equal(&l, &before, sizeof(l));
}

static void test_page_cache_is_found(void **state)
{
	uint8_t buf[0x3000];
	struct linux_file f;
	struct err e = { 0 };
	uint64_t page;

	(void)state;
	if (linux_file_layout_find(&l, &mm, &mem, symbols,
				   (struct linux_files_known){ s.mapped, 2 }, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(l.mapping_head, LF_HEAD);
	assert_int_equal(l.inode_size, LF_SIZE);
	assert_int_equal(l.chunk_shift, 6);
	assert_int_equal(linux_file_open(&f, &l, &mem, s.file[1]), LINUX_OK);
	assert_int_equal(linux_file_size(&f), 0x5040 + 3 * 64);
	assert_int_equal(linux_file_read(&f, 0, buf, sizeof(buf)), 0x2000);
	assert_memory_equal(buf, g.user + 0x2000, 0x2000);
	/* The second is being read in. */
	memcpy(&page, lm_ptr(&g, s.low[1] + 48, 8), 8);
	lm_put64(&g, page, 1);
	assert_int_equal(linux_file_read(&f, 0, buf, sizeof(buf)), 0x1000);
}

static void test_one_file_is_too_little(void **state)
{
	(void)state;
	expect_refused(1, "two different ELF files");
	s.mapped[1] = s.mapped[0];
	expect_refused(2, "two different ELF files");
	build(true);
	s.mapped[1].vma.file_off = 4096;
	expect_refused(2, "two different ELF files");
	build(true);
	g.user[0] = 0;
	expect_refused(2, "two different ELF files");
}

static void test_pages_must_be_the_same(void **state)
{
	(void)state;
	g.user[0x3fff] ^= 1;
	expect_refused(2, "no pages");
	build(true);
	lm_put64(&g, s.low[1] + 48, 0); /* three pages bear each other out: not enough */
	expect_refused(2, "no pages");
}

static void test_small_files_are_ambiguous(void **state)
{
	(void)state;
	build(false);
	expect_refused(2, "no file of many");
}

static void test_two_heads_are_ambiguous(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++)
		memcpy(lm_ptr(&g, s.inode[i] + LF_INODE_DATA + 40, 8),
		       lm_ptr(&g, s.inode[i] + LF_INODE_DATA + LF_HEAD, 8), 8);
	expect_refused(2, "no pages");
}

static void test_sizes_must_be_right(void **state)
{
	(void)state;
	lm_put64(&g, s.inode[1] + LF_SIZE, 0x5041 + 3 * 64);
	expect_refused(2, "sizes");
	build(true);
	for (size_t i = 0; i < 2; i++) /* in two places */
		memcpy(lm_ptr(&g, s.inode[i] + 120, 8), lm_ptr(&g, s.inode[i] + LF_SIZE, 8), 8);
	expect_refused(2, "sizes");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_page_cache_is_found),	 T(test_one_file_is_too_little),
		T(test_pages_must_be_the_same),	 T(test_small_files_are_ambiguous),
		T(test_two_heads_are_ambiguous), T(test_sizes_must_be_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

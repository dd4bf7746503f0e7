/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/linux_find_fixture.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define HEAD 16u /* of the pages in struct address_space */
#define SIZE 80u /* in struct inode */

static struct lm g;
static struct lf s;
static struct memory mem;
static struct symtab *symbols;
static struct linux_mm_layout mm;
static struct linux_file_layout l;
static struct linux_file_known known[2];
static uint64_t inode[2], low[2], top[2];

/* A page of the file, with the bytes that the process has at va. */
static uint64_t put_page(uint64_t mapping, uint64_t index, uint64_t va)
{
	uint64_t at = lm_alloc(&g, 4096, 4096), page = LM_VMEMMAP + ((at - LM_DIRECT) >> 12) * 64;

	memcpy(lm_ptr(&g, at, 4096), g.user + (va - LM_USER), 4096);
	lm_put64(&g, page, 1u << 2);
	lm_put64(&g, page + 24, mapping);
	lm_put64(&g, page + 32, index);
	return page;
}

/* Two pages of an ELF file, which the process has as well; its array has two levels or one. */
static void make_file(size_t i, bool levels)
{
	uint64_t va = LM_USER + i * 0x2000, as;
	Elf64_Ehdr h = { .e_shoff = 0x5000 + i * 64, .e_shnum = 3, .e_shentsize = 64 };

	memcpy(h.e_ident, ELFMAG, SELFMAG);
	h.e_ident[EI_CLASS] = ELFCLASS64;
	memset(g.user + i * 0x2000, 'a' + (int)i, 0x2000);
	memcpy(g.user + i * 0x2000, &h, sizeof(h));
	memcpy(&inode[i], lm_ptr(&g, s.file[i] + LF_FILE_INODE, 8), 8);
	as = inode[i] + LF_INODE_DATA;
	lm_put64(&g, inode[i] + SIZE, h.e_shoff + 3 * 64);

	low[i] = lm_alloc(&g, 40 + 64 * 8, 64);
	top[i] = lm_alloc(&g, 40 + 64 * 8, 64);
	*lm_ptr(&g, top[i], 1) = 6;
	lm_put64(&g, top[i] + 40, low[i] + 2);
	lm_put64(&g, as + HEAD, (levels ? top[i] : low[i]) + 2);
	lm_put64(&g, low[i] + 40, put_page(as, 0, va));
	lm_put64(&g, low[i] + 48, put_page(as, 1, va + 4096));
	known[i] = (struct linux_file_known){
		.vma = { .start = va, .end = va + 0x2000, .file = s.file[i] }, .space = LM_CR3
	};
}

static void build(bool levels)
{
	struct err e = { 0 };

	memset(&g, 0, sizeof(g));
	memset(&l, 0x55, sizeof(l));
	mem = lm_memory(&g);
	s = lf_scene(&g);
	make_file(0, levels);
	make_file(1, false);
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

	assert_int_equal(linux_file_layout_find(&l, &mm, &mem, symbols, known, n, &e), -ENOENT);
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
	if (linux_file_layout_find(&l, &mm, &mem, symbols, known, 2, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(l.mapping_head, HEAD);
	assert_int_equal(l.inode_size, SIZE);
	assert_int_equal(l.chunk_shift, 6);
	assert_int_equal(linux_file_open(&f, &l, &mem, s.file[1]), LINUX_OK);
	assert_int_equal(linux_file_size(&f), 0x5040 + 3 * 64);
	assert_int_equal(linux_file_read(&f, 0, buf, sizeof(buf)), 0x2000);
	assert_memory_equal(buf, g.user + 0x2000, 0x2000);
	/* The second is being read in. */
	memcpy(&page, lm_ptr(&g, low[1] + 48, 8), 8);
	lm_put64(&g, page, 1);
	assert_int_equal(linux_file_read(&f, 0, buf, sizeof(buf)), 0x1000);
}

static void test_one_file_is_too_little(void **state)
{
	(void)state;
	expect_refused(1, "two different ELF files");
	known[1] = known[0];
	expect_refused(2, "two different ELF files");
	build(true);
	known[1].vma.file_off = 4096;
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
	lm_put64(&g, low[1] + 48, 0); /* three pages bear each other out: not enough */
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
		memcpy(lm_ptr(&g, inode[i] + LF_INODE_DATA + 40, 8),
		       lm_ptr(&g, inode[i] + LF_INODE_DATA + HEAD, 8), 8);
	expect_refused(2, "no pages");
}

static void test_sizes_must_be_right(void **state)
{
	(void)state;
	lm_put64(&g, inode[1] + SIZE, 0x5041 + 3 * 64);
	expect_refused(2, "sizes");
	build(true);
	for (size_t i = 0; i < 2; i++) /* in two places */
		memcpy(lm_ptr(&g, inode[i] + 120, 8), lm_ptr(&g, inode[i] + SIZE, 8), 8);
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

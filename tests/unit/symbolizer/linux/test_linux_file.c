/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/core/elf64.h"
#include "tests/unit/linux_mm_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct lm g;
static struct memory mem;
static struct symtab *symbols;
static struct linux_file_layout layout;
static struct linux_mm_layout mm_layout;
static uint8_t buf[LINUX_VDSO_MAX];

static int setup(void **state)
{
	struct lm_types all = { 0 };
	struct types t = lm_types(&all);

	(void)state;
	memset(&g, 0, sizeof(g));
	mem = lm_memory(&g);
	symbols = symtab_create();
	if (!symbols || symtab_freeze(symbols, NULL) < 0)
		return -1;
	lm_layout(&mm_layout, true);
	return linux_file_layout_init(&layout, &t, symbols, NULL);
}

static int teardown(void **state)
{
	(void)state;
	symtab_destroy(symbols);
	return 0;
}

static uint64_t mapping;

/* An empty file of so many bytes. */
static struct linux_file new_file(uint64_t size)
{
	uint64_t at = lm_file(&g, 0, 0, lm_inode(&g, 1, size));
	struct linux_file f = { 0 };

	mapping = lm_mapping(&g, at);
	assert_int_equal(linux_file_open(&f, &layout, &mem, at), LINUX_OK);
	return f;
}

static void put_head(uint64_t entry)
{
	lm_put64(&g, mapping + 16, entry);
}

static void expect_bytes(const struct linux_file *f, uint64_t off, size_t len, const char *each)
{
	memset(buf, '#', sizeof(buf));
	assert_int_equal(linux_file_read(f, off, buf, len), strlen(each));
	assert_memory_equal(buf, each, strlen(each));
}

/* -- layout ----------------------------------------------------------------------- */

static void test_layout_is_asked_for(void **state)
{
	struct lm_types none = { .without = { "address_space.i_pages.xa_head" } };
	struct lm_types odd = { .odd = "xa_node.slots" };
	struct linux_file_layout l;
	struct types t = lm_types(&none);
	struct err e = { 0 };

	(void)state;
	assert_int_equal(linux_file_layout_init(&l, &t, symbols, &e), -ENOENT);
	assert_non_null(strstr(e.text, "i_pages.xa_head in struct address_space"));
	t = lm_types(&odd);
	assert_int_equal(linux_file_layout_init(&l, &t, symbols, NULL), -EINVAL);
	assert_int_equal(layout.chunk_shift, 6);
	assert_int_equal(layout.page_size, LM_PAGE_SIZE);
	assert_int_equal(layout.uptodate, 5);
	assert_int_equal(layout.vmemmap_at, 0);
}

/* The kernel's variables, when there are any, say where pages and direct map are. */
static void test_randomized_memory(void **state)
{
	struct lm_types all = { 0 };
	struct types t = lm_types(&all);
	uint64_t vars = lm_alloc(&g, 16, 8), at = lm_file(&g, 0, 0, lm_inode(&g, 1, 4096));
	struct symtab *s = symtab_create();
	struct linux_file_layout l;
	struct linux_file f;

	(void)state;
	assert_int_equal(symtab_add(s, vars, 8, 'D', "vmemmap_base"), 0);
	assert_int_equal(symtab_freeze(s, NULL), 0);
	assert_int_equal(linux_file_layout_init(&l, &t, s, NULL), -ENOENT);
	symtab_destroy(s);

	s = symtab_create();
	assert_int_equal(symtab_add(s, vars, 8, 'D', "vmemmap_base"), 0);
	assert_int_equal(symtab_add(s, vars + 8, 8, 'D', "page_offset_base"), 0);
	assert_int_equal(symtab_freeze(s, NULL), 0);
	assert_int_equal(linux_file_layout_init(&l, &t, s, NULL), 0);
	symtab_destroy(s);
	assert_int_equal(linux_file_open(&f, &l, &mem, at), LINUX_CHANGING); /* not set yet */
	lm_put64(&g, vars, LM_VMEMMAP - 2 * LM_PAGE_SIZE);
	lm_put64(&g, vars + 8, LM_DIRECT - 2 * 4096);
	assert_int_equal(linux_file_open(&f, &l, &mem, at), LINUX_OK);
	mapping = lm_mapping(&g, at);
	put_head(lm_page(&g, mapping, 0, 'r'));
	expect_bytes(&f, 10, 3, "rrr");
}

/* -- pages ------------------------------------------------------------------------- */

static void test_one_page(void **state)
{
	struct linux_file f = new_file(4096 + 3);

	(void)state;
	assert_int_equal(linux_file_size(&f), 4099);
	expect_bytes(&f, 0, 4, "");
	put_head(lm_page(&g, mapping, 0, 'a'));
	expect_bytes(&f, 0, 4, "aaaa");
	expect_bytes(&f, 4094, 4, "aa"); /* the second page isn't there */
	expect_bytes(&f, 4096, 4, "");
	expect_bytes(&f, 4099, 4, "");
	expect_bytes(&f, UINT64_MAX, 4, "");
	expect_bytes(&f, 4, 0, "");
}

static void test_end_of_file(void **state)
{
	struct linux_file f = new_file(5);

	(void)state;
	put_head(lm_page(&g, mapping, 0, 'a'));
	expect_bytes(&f, 0, 100, "aaaaa");
	expect_bytes(&f, 3, 100, "aa");
	assert_int_equal(linux_file_read_cb(&f, 3, buf, SIZE_MAX), 2);
}

static void test_levels_and_holes(void **state)
{
	struct linux_file f = new_file(UINT64_C(1) << 40);
	uint64_t top = lm_xa_node(&g, 12), mid = lm_xa_node(&g, 6), low = lm_xa_node(&g, 0);

	(void)state;
	put_head(top + 2);
	lm_xa_slot(&g, top, 3, mid + 2);
	lm_xa_slot(&g, mid, 5, low + 2);
	lm_xa_slot(&g, low, 7, lm_page(&g, mapping, (3 << 12) + (5 << 6) + 7, 'x'));
	lm_xa_slot(&g, low, 8, lm_page(&g, mapping, (3 << 12) + (5 << 6) + 8, 'y'));
	lm_xa_slot(&g, low, 9, 0x402); /* "try again" */
	expect_bytes(&f, (uint64_t)((3 << 12) + (5 << 6) + 8) * 4096 - 2, 4, "xxyy");
	expect_bytes(&f, (uint64_t)((3 << 12) + (5 << 6) + 9) * 4096 - 2, 4, "yy");
	expect_bytes(&f, (uint64_t)((3 << 12) + (6 << 6) + 8) * 4096, 4, "");
	expect_bytes(&f, (uint64_t)(2 << 12) * 4096, 4, "");
	/* Beyond what the tree covers: not the page that the low bits name. */
	expect_bytes(&f, (uint64_t)((67 << 12) + (5 << 6) + 8) * 4096, 4, "");
}

static void test_large_folio(void **state)
{
	struct lm_scene s = lm_scene(&g, true);
	struct linux_file f;
	uint64_t va, next;

	(void)state;
	assert_int_equal(linux_file_open(&f, &layout, &mem, s.file), LINUX_OK);
	assert_int_equal(linux_file_size(&f), LM_SCENE_SIZE);
	expect_bytes(&f, 2 * 4096 - 3, 6, "bbbccc");
	expect_bytes(&f, 3 * 4096 - 3, 6, "ccc"); /* swapped out */
	expect_bytes(&f, 5 * 4096 - 1, 3, "eff");
	assert_int_equal(linux_file_page(&f, 1, &va), LINUX_OK);
	assert_int_equal(linux_file_page(&f, 2, &next), LINUX_OK);
	assert_int_equal(next, va + 4096);
	assert_int_equal(linux_file_page(&f, 3, &va), LINUX_NOT_THERE);
}

/* Kernels before 5.3 have each page of a huge one in its own slot. */
static void test_tail_in_its_own_slot(void **state)
{
	struct linux_file f = new_file(2 * 4096);
	uint64_t low = lm_xa_node(&g, 0), head, tail;

	(void)state;
	put_head(low + 2);
	head = lm_page(&g, mapping, 0, 'h');
	tail = lm_page(&g, 0, 0, 't');
	lm_put64(&g, tail + 8, head | 1);
	lm_put64(&g, tail, 0); /* a tail's flags say nothing */
	lm_xa_slot(&g, low, 0, head);
	lm_xa_slot(&g, low, 1, tail);
	expect_bytes(&f, 4095, 2, "ht");
	lm_xa_slot(&g, low, 0, tail); /* not the page of that index */
	expect_bytes(&f, 0, 2, "");
}

/* Since 7.1 a tail may have a mask in the head's place: this page is the second of two. */
static void test_head_by_a_mask(void **state)
{
	struct lm_types newer = { .without = { "page.compound_head" } };
	struct linux_file f = new_file(4 * 4096);
	uint64_t low = lm_xa_node(&g, 0), head, tail;
	const struct types t = lm_types(&newer);
	struct linux_file_layout of_7_1;

	(void)state;
	assert_int_equal(linux_file_layout_init(&of_7_1, &t, symbols, NULL), 0);
	assert_int_equal(of_7_1.page_head, 8);
	put_head(low + 2);
	do {
		head = lm_page(&g, mapping, 0, 'h');
	} while (head & LM_PAGE_SIZE);
	tail = lm_page(&g, 0, 0, 't');
	assert_int_equal(tail, head + LM_PAGE_SIZE);
	lm_put64(&g, tail, 0);
	lm_xa_slot(&g, low, 0, head);
	lm_xa_slot(&g, low, 1, head);
	lm_put64(&g, tail + 8, (~UINT64_C(0) << 7) | 1); /* two pages of 64 bytes */
	expect_bytes(&f, 4095, 2, "ht");
	lm_put64(&g, tail + 8, head | 1);
	expect_bytes(&f, 4095, 2, "ht");
	lm_put64(&g, tail + 8, (~UINT64_C(0) << 6) | 1); /* its own head? */
	expect_bytes(&f, 4095, 2, "h");
}

static void test_pages_that_are_not_valid(void **state)
{
	struct linux_file f = new_file(3 * 4096);
	uint64_t page = lm_page(&g, mapping, 0, 'a'), low = lm_xa_node(&g, 0), va;

	(void)state;
	put_head(page);
	lm_put64(&g, page, ~(UINT64_C(1) << 5)); /* not up to date */
	assert_int_equal(linux_file_page(&f, 0, &va), LINUX_NOT_THERE);
	lm_put64(&g, page, 1 << 5);
	lm_put64(&g, page + 24, mapping + 8); /* another file's */
	assert_int_equal(linux_file_page(&f, 0, &va), LINUX_CHANGING);
	lm_put64(&g, page + 24, mapping);
	lm_put64(&g, page + 40, 1); /* another page */
	assert_int_equal(linux_file_page(&f, 0, &va), LINUX_CHANGING);
	lm_put64(&g, page + 40, 0);
	assert_int_equal(linux_file_page(&f, 0, &va), LINUX_OK);
	/* An entry for one page alone, found under the next index. */
	put_head(low + 2);
	lm_xa_slot(&g, low, 1, page);
	assert_int_equal(linux_file_page(&f, 1, &va), LINUX_CHANGING);
	/* Its head is a tail itself. */
	lm_put64(&g, page + 8, page | 1);
	assert_int_equal(linux_file_page(&f, 1, &va), LINUX_CHANGING);
	lm_xa_slot(&g, low, 2, UINT64_C(0xffffc00000000000));
	assert_int_equal(linux_file_page(&f, 2, &va), LINUX_UNREADABLE);
}

static void test_pages_that_are_not_numbered(void **state)
{
	struct linux_file f = new_file(4096);
	uint64_t page = lm_alloc(&g, LM_PAGE_SIZE, 64), va;

	(void)state;
	lm_put64(&g, page, 1 << 5);
	lm_put64(&g, page + 24, mapping);
	put_head(page); /* a struct page in the direct map: SPARSEMEM without vmemmap */
	assert_int_equal(linux_file_page(&f, 0, &va), LINUX_UNKNOWN);
	page = lm_page(&g, mapping, 0, 'a');
	put_head(page);
	f.vmemmap += 8;
	assert_int_equal(linux_file_page(&f, 0, &va), LINUX_UNKNOWN);
	f.vmemmap = UINT64_C(1) << 63;
	assert_int_equal(linux_file_page(&f, 0, &va), LINUX_UNKNOWN);
}

static void test_trees_that_cannot_be(void **state)
{
	struct linux_file f = new_file(UINT64_C(1) << 50);
	uint64_t top = lm_xa_node(&g, 12), low = lm_xa_node(&g, 0), va;

	(void)state;
	put_head(top + 2);
	lm_xa_slot(&g, top, 0, top + 2); /* in a circle */
	assert_int_equal(linux_file_page(&f, 0, &va), LINUX_CHANGING);
	lm_xa_slot(&g, top, 0, low + 2); /* a level left out */
	assert_int_equal(linux_file_page(&f, 0, &va), LINUX_CHANGING);
	*lm_ptr(&g, top + 3, 1) = 7;
	assert_int_equal(linux_file_page(&f, 0, &va), LINUX_CHANGING);
	*lm_ptr(&g, top + 3, 1) = 66;
	assert_int_equal(linux_file_page(&f, 0, &va), LINUX_CHANGING);
	*lm_ptr(&g, top + 3, 1) = 0;
	lm_xa_slot(&g, top, 0, low + 2); /* a node where pages are */
	assert_int_equal(linux_file_page(&f, 0, &va), LINUX_NOT_THERE);
	lm_xa_slot(&g, top, 0, 1 << 2 | 2); /* siblings of each other */
	lm_xa_slot(&g, top, 1, 0 << 2 | 2);
	assert_int_equal(linux_file_page(&f, 0, &va), LINUX_CHANGING);
	put_head(UINT64_C(0xffffc00000000002));
	assert_int_equal(linux_file_page(&f, 0, &va), LINUX_UNREADABLE);
}

/* Memory that changes after the page was copied. */
static uint64_t changing_page;

static size_t changing_read(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	size_t n = lm_read(ctx, space, va, dst, len);

	if (n && va >= LM_DIRECT && *(const char *)dst == 'a' && changing_page)
		lm_put64(ctx, changing_page + 24, 0);
	return n;
}

static void test_page_that_is_taken_away_while_it_is_read(void **state)
{
	struct linux_file f = new_file(4096);
	struct memory m = { changing_read, &g };
	uint64_t page = lm_page(&g, mapping, 0, 'a');

	(void)state;
	put_head(page);
	f.m = &m;
	changing_page = 0;
	expect_bytes(&f, 0, 2, "aa");
	changing_page = page;
	expect_bytes(&f, 0, 2, "");
}

static void test_files_that_cannot_be(void **state)
{
	uint64_t inode = lm_inode(&g, 1, UINT64_MAX), at = lm_file(&g, 0, 0, inode);
	struct linux_file f = { .size = 77 };

	(void)state;
	assert_int_equal(linux_file_open(&f, &layout, &mem, at), LINUX_CHANGING);
	assert_int_equal(linux_file_open(&f, &layout, &mem, 0x1234), LINUX_UNREADABLE);
	lm_put64(&g, at + 32, 0);
	assert_int_equal(linux_file_open(&f, &layout, &mem, at), LINUX_UNREADABLE);
	assert_int_equal(f.size, 77);
}

/* -- images ------------------------------------------------------------------------ */

/* An ELF file with one segment to load, notes at 0x200, and a section table at its end. */
static size_t make_elf(uint8_t *b, size_t sections_at)
{
	Elf64_Ehdr h = { .e_type = ET_DYN,
			 .e_machine = EM_X86_64,
			 .e_phoff = 0x40,
			 .e_shoff = sections_at,
			 .e_shnum = 2,
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_shentsize = sizeof(Elf64_Shdr),
			 .e_phnum = 2 };
	Elf64_Phdr p[2] = { { .p_type = PT_LOAD, .p_filesz = 0x300 },
			    { .p_type = PT_NOTE, .p_offset = 0x200, .p_filesz = 0x100 } };
	const uint32_t note[] = {
		4, 2, 99, 0x00554e47, 0xffff, 4, 20, NT_GNU_BUILD_ID, 0x00554e47
	};

	memcpy(h.e_ident, ELFMAG, SELFMAG);
	h.e_ident[EI_CLASS] = ELFCLASS64;
	h.e_ident[EI_DATA] = ELFDATA2LSB;
	memcpy(b, &h, sizeof(h));
	memcpy(b + 0x40, p, sizeof(p));
	memcpy(b + 0x200, note, sizeof(note));
	for (uint8_t i = 0; i < 20; i++)
		b[0x200 + sizeof(note) + i] = (uint8_t)(0xa0 + i);
	return sections_at + 2 * sizeof(Elf64_Shdr);
}

static void test_vdso(void **state)
{
	uint64_t mm = lm_alloc(&g, LM_MM_SIZE, 8), image = lm_alloc(&g, 16, 8);
	uint64_t data = lm_alloc(&g, 8192, 4096);
	size_t len = make_elf(g.user, 0x1100);

	(void)state;
	assert_int_equal(linux_vdso_read(&mm_layout, &mem, mm, LM_CR3, buf), 0);
	lm_put64(&g, mm + 16, LM_USER);
	assert_int_equal(linux_vdso_read(&mm_layout, &mem, mm, LM_CR3, buf), len);
	assert_memory_equal(buf, g.user, len);

	/* The kernel's copy comes first. */
	make_elf(lm_ptr(&g, data, 8192), 0x1000);
	lm_put64(&g, image, 8192);
	lm_put64(&g, image + 8, data);
	lm_put64(&g, mm + 24, image);
	len = linux_vdso_read(&mm_layout, &mem, mm, LM_CR3, buf);
	assert_int_equal(len, 0x1000 + 2 * sizeof(Elf64_Shdr));
	assert_memory_equal(buf, lm_ptr(&g, data, len), len);

	/* One that claims more than there is: its segments count alone. */
	*lm_ptr(&g, data + 0x2f, 1) = 0x7f; /* e_shoff */
	assert_int_equal(linux_vdso_read(&mm_layout, &mem, mm, LM_CR3, buf), 0x300);
	lm_put64(&g, mm + 16, LM_USER + 1);
	assert_int_equal(linux_vdso_read(&mm_layout, &mem, mm, LM_CR3, buf), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_layout_is_asked_for),
		T(test_randomized_memory),
		T(test_one_page),
		T(test_end_of_file),
		T(test_levels_and_holes),
		T(test_large_folio),
		T(test_tail_in_its_own_slot),
		T(test_head_by_a_mask),
		T(test_pages_that_are_not_valid),
		T(test_pages_that_are_not_numbered),
		T(test_trees_that_cannot_be),
		T(test_page_that_is_taken_away_while_it_is_read),
		T(test_files_that_cannot_be),
		T(test_vdso),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

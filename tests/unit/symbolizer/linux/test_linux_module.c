/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Modules in a made-up guest's memory, and lists that lie. */
#include "symbolizer/linux/module_find.h"
#include "symbolizer/linux/module_load.h"

#include "tests/linux_guest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct guest g;
static struct memory mem = { guest_read, &g };
static struct linux_module_layout l;
static struct linux_module_list list;
static struct err e;

static int setup(void **state)
{
	struct symtab *s = guest_symbols();
	int ret;

	(void)state;
	guest_make(&g, false);
	err_clear(&e);
	ret = linux_module_layout(&l, &guest_types, s, &e);
	symtab_destroy(s);
	return ret;
}

static int teardown(void **state)
{
	(void)state;
	linux_module_list_deinit(&list);
	return 0;
}

static void offsets(void **state)
{
	struct symtab *s = guest_symbols();
	struct types lacking = guest_types;

	(void)state;
	assert_int_equal(l.modules, GUEST_MODULES);
	assert_int_equal(l.text_base, GM_TEXT);
	assert_int_equal(l.init_base, GM_INIT);
	assert_int_equal(l.typetab, GK_TYPETAB);
	assert_int_equal(l.notes_attrs, GM_NOTES);
	assert_int_equal(linux_module_layout(&l, NULL, s, &e), -ENOENT);
	assert_non_null(strstr(e.text, "no type information"));
	/* what linux_module_find() begins with */
	memset(&l, 0, sizeof(l));
	assert_int_equal(linux_module_layout(&l, NULL, s, NULL), -ENOENT);
	assert_int_equal(l.modules, GUEST_MODULES);
	assert_int_equal(l.list, 0);
	err_clear(&e);
	lacking.ctx = (void *)(uintptr_t) "mem[3].base";
	assert_int_equal(linux_module_layout(&l, &lacking, s, &e), -ENOENT);
	assert_non_null(strstr(e.text, "struct module"));
	symtab_destroy(s);
	err_clear(&e);
	s = symtab_create();
	assert_int_equal(symtab_freeze(s, NULL), 0);
	assert_int_equal(linux_module_layout(&l, &guest_types, s, &e), -ENOENT);
	assert_non_null(strstr(e.text, "`modules'"));
	symtab_destroy(s);
}

static void expect(size_t n, size_t skipped, bool cut)
{
	linux_module_list_deinit(&list);
	assert_int_equal(linux_module_list(&l, &mem, &list, &e), 0);
	assert_int_equal(list.n, n);
	assert_int_equal(list.skipped, skipped);
	assert_int_equal(list.cut, cut);
}

static void listed(void **state)
{
	(void)state;
	expect(2, 0, false);
	assert_string_equal(list.module[0].name, "configfs");
	assert_int_equal(list.module[0].state, LINUX_MODULE_COMING);
	assert_int_equal(list.module[0].text.start, GUEST_TEXT(0));
	assert_int_equal(list.module[0].text.end, GUEST_TEXT(0) + GUEST_TEXT_BYTES);
	assert_int_equal(list.module[0].init_text.start, GUEST_TEXT(2));
	assert_int_equal(list.module[0].build_id_len, 20);
	assert_int_equal(list.module[0].build_id[0], 0x88);
	assert_string_equal(list.module[1].name, "nf_tables");
	assert_int_equal(list.module[1].init_text.end, 0);
}

static void symbols_and_tables(void **state)
{
	const struct symbol *s;
	struct linux_module *m;
	uint64_t off, va;

	(void)state;
	expect(2, 0, false);
	m = &list.module[0];
	assert_int_equal(linux_module_load(&l, &mem, m, &e), 0);
	/* no data, sections, labels, values, other modules' or undefined ones */
	assert_int_equal(symtab_count(m->symbols), 4);
	s = symtab_lookup(m->symbols, GUEST_TEXT(0) + 65, &off);
	assert_string_equal(s->name, "configfs_read");
	assert_int_equal(s->type, 'T');
	assert_int_equal(s->size, 0x80);
	assert_int_equal(off, 1);
	assert_string_equal(symtab_lookup(m->symbols, GUEST_TEXT(2), NULL)->name, "configfs_init");
	assert_int_equal(symtab_find(m->symbols, "too_long")->size, 0x10);
	assert_int_equal(orc_count(m->orc), GUEST_NORCS / 2);
	orc_at(m->orc, 5, &va);
	assert_int_equal(va, GUEST_TEXT(0) + 80);
	assert_int_equal(orc_lookup(m->orc, va + 3)->sp_offset, 16);
	assert_int_equal(orc_lookup(m->init_orc, GUEST_TEXT(2) + 40)->sp_offset, 24);
	/* the same again, once it is loaded and its init text is gone */
	guest_u64(&g, GUEST_MODULE(0) + GM_INIT, 0);
	expect(2, 0, false);
	m = &list.module[0];
	assert_int_equal(linux_module_load(&l, &mem, m, &e), 0);
	assert_int_equal(symtab_count(m->symbols), 3);
	assert_null(m->init_orc);
	/* the second one has no symbol of its own but one, and no table */
	assert_int_equal(linux_module_load(&l, &mem, &list.module[1], &e), 0);
	assert_int_equal(symtab_count(list.module[1].symbols), 1);
	assert_null(list.module[1].orc);
}

/* Kernels that do not keep build ids still show the notes. */
static void build_id_by_note(void **state)
{
	static const uint8_t id[20] = { 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5 };

	(void)state;
	l.build_id = LINUX_MODULE_NONE;
	expect(2, 0, false);
	assert_int_equal(list.module[0].build_id_len, 20);
	assert_memory_equal(list.module[0].build_id, id, 20);
	assert_int_equal(list.module[1].build_id_len, 0);
	/* longer than the section, than an id, than what we take */
	guest_u32(&g, GUEST_NOTES + 0x200 + 24, 21);
	expect(2, 0, false);
	assert_int_equal(list.module[0].build_id_len, 0);
	guest_u32(&g, GUEST_NOTES + 0x200 + 24, 20);
	guest_u32(&g, GUEST_NOTES + 0x200, 0xfffffffe);
	expect(2, 0, false);
	assert_int_equal(list.module[0].build_id_len, 0);
	guest_make(&g, false);
	guest_u64(&g, GUEST_NOTES + 80 + 16, 1u << 20);
	expect(2, 0, false);
	assert_int_equal(list.module[0].build_id_len, 0);
}

/* Few entries do not tell 4.14's layout from 4.18's: unknown is never taken for an end. */
static void table_layouts(void **state)
{
	static const enum orc_layout said[] = { ORC_LAYOUT_NONE, ORC_LAYOUT_4_14, ORC_LAYOUT_4_18 };

	(void)state;
	for (unsigned int i = 0; i < GUEST_NORCS; i++)
		memcpy(g.orc + 6 * i, (int16_t[]){ 8, 0, i % 8 ? 0x05 : 0 }, 6);
	for (unsigned int i = 0; i < 3; i++) {
		expect(2, 0, false);
		l.orc_format.layout = said[i];
		/* The numbers of registers are those of 4.14. */
		for (unsigned int n = 0; n < ORC_NUMBERS; n++)
			l.orc_format.reg[n] = n <= ORC_SP_INDIRECT ? (uint8_t)n : ORC_NO_REG;
		assert_int_equal(linux_module_load(&l, &mem, &list.module[0], &e), 0);
		assert_int_equal(orc_layout(list.module[0].orc), ORC_LAYOUT_4_18);
		assert_int_equal(orc_lookup(list.module[0].orc, GUEST_TEXT(0) + 128)->type,
				 ORC_UNDEFINED);
		assert_int_equal(orc_lookup(list.module[0].orc, GUEST_TEXT(0) + 16)->type,
				 ORC_CALL);
	}
	/* entries that tell nothing: what is said of the kernel's own counts */
	for (unsigned int i = 0; i < GUEST_NORCS; i++)
		memcpy(g.orc + 6 * i, (int16_t[]){ 0, 0, 0 }, 6);
	assert_int_equal(linux_module_load(&l, &mem, &list.module[0], &e), 0);
	l.orc_format.layout = ORC_LAYOUT_NONE;
	assert_int_equal(linux_module_load(&l, &mem, &list.module[0], &e), -EINVAL);
}

/* Before 5.2 the letter was in st_info; in 5.0 and 5.1 in st_size. */
static void old_letters(void **state)
{
	(void)state;
	l.typetab = LINUX_MODULE_NONE;
	for (int in_size = 0; in_size < 2; in_size++) {
		const struct symbol *s;

		for (unsigned int i = 0; i < GUEST_NSYMBOLS; i++) {
			uint64_t at = GUEST_KALLSYMS + 0x100 + i * sizeof(Elf64_Sym);
			uint8_t letter = (uint8_t)guest_symbol[i].letter, plain = 2;

			guest_put(&g, at + 4, in_size ? &plain : &letter, 1);
			if (in_size)
				guest_u64(&g, at + 16, letter);
		}
		expect(2, 0, false);
		assert_int_equal(linux_module_load(&l, &mem, &list.module[0], &e), 0);
		assert_int_equal(symtab_count(list.module[0].symbols), 4);
		s = symtab_find(list.module[0].symbols, "configfs_read");
		assert_int_equal(s->type, 'T');
		assert_int_equal(s->addr, GUEST_TEXT(0) + 64);
		assert_int_equal(symtab_find(list.module[0].symbols, "configfs_open")->size, 64);
	}
}

static void damaged_parts(void **state)
{
	struct linux_module *m;

	(void)state;
	expect(2, 0, false);
	m = &list.module[0];
	guest_u32(&g, GUEST_KALLSYMS + GK_NUM, LINUX_MODULE_MAX_SYMBOLS + 1);
	assert_int_equal(linux_module_load(&l, &mem, m, &e), -E2BIG);
	assert_non_null(strstr(e.text, "configfs"));
	/* one part is no reason to do without the other */
	assert_null(m->symbols);
	assert_non_null(m->orc);
	guest_u32(&g, GUEST_KALLSYMS + GK_NUM, 0x10000);
	assert_int_equal(linux_module_load(&l, &mem, m, &e), -ENOENT);
	guest_u32(&g, GUEST_KALLSYMS + GK_NUM, GUEST_NSYMBOLS);
	guest_u64(&g, GUEST_KALLSYMS + GK_STRTAB, 0x1000);
	assert_int_equal(linux_module_load(&l, &mem, m, &e), -ENOENT);
	guest_u64(&g, GUEST_KALLSYMS + GK_STRTAB, UINT64_MAX - 3);
	assert_int_equal(linux_module_load(&l, &mem, m, &e), -ENOENT);
	guest_make(&g, false);
	guest_u32(&g, GUEST_KALLSYMS + 0x100 + 2 * sizeof(Elf64_Sym), 0xffffffff);
	assert_int_equal(linux_module_load(&l, &mem, m, &e), -E2BIG);
	guest_make(&g, false);
	guest_u32(&g, GUEST_MODULE(0) + GM_NORCS, LINUX_MODULE_MAX_ORCS + 1);
	err_clear(&e);
	assert_int_equal(linux_module_load(&l, &mem, m, &e), -E2BIG);
	assert_non_null(strstr(e.text, "unwind"));
	assert_non_null(m->symbols);
	guest_make(&g, false);
	memset(g.orc, 0xff, sizeof(g.orc));
	assert_int_equal(linux_module_load(&l, &mem, m, &e), -EINVAL);
	assert_null(m->orc);
}

static void lying_lists(void **state)
{
	(void)state;
	/* a name that would not print; a text in the kernel's own; one without end; overlapping */
	guest_put(&g, GUEST_MODULE(1) + GM_NAME, "a\nb", 4);
	expect(1, 1, false);
	guest_make(&g, false);
	guest_u64(&g, GUEST_MODULE(1) + GM_TEXT, 0xffffffff81fff800ull);
	expect(1, 1, false);
	guest_u64(&g, GUEST_MODULE(1) + GM_TEXT, 0x400000);
	expect(1, 1, false);
	guest_u64(&g, GUEST_MODULE(1) + GM_TEXT, UINT64_MAX - 10);
	expect(1, 1, false);
	guest_u64(&g, GUEST_MODULE(1) + GM_TEXT, GUEST_TEXT(0) + 0xfff);
	expect(1, 1, false);
	guest_u64(&g, GUEST_MODULE(1) + GM_TEXT, GUEST_TEXT(2) - 0xfff);
	expect(1, 1, false);
	guest_make(&g, false);
	guest_u32(&g, GUEST_MODULE(1) + GM_TEXT_SIZE, LINUX_MODULE_MAX_TEXT + 1);
	expect(1, 1, false);
	guest_make(&g, false);
	guest_u32(&g, GUEST_MODULE(1) + GM_STATE, 77);
	expect(1, 1, false);
	/* not formed yet: no reason to complain */
	guest_u32(&g, GUEST_MODULE(1) + GM_STATE, LINUX_MODULE_UNFORMED);
	expect(1, 0, false);
	/* a loop, a way to nowhere, no list at all */
	guest_make(&g, false);
	guest_u64(&g, GUEST_MODULE(1) + GM_LIST, GUEST_MODULE(0) + GM_LIST);
	expect(2, 0, true);
	guest_u64(&g, GUEST_MODULE(0) + GM_LIST, 0x1000);
	expect(1, 0, true);
	guest_u64(&g, GUEST_MODULES, 0);
	linux_module_list_deinit(&list);
	assert_int_equal(linux_module_list(&l, &mem, &list, &e), -ENOENT);
	guest_list(&g, (uint64_t[]){ GUEST_MODULES }, 1);
	expect(0, 0, false);
}

static void changes(void **state)
{
	uint64_t a, b, c, d, reads;

	(void)state;
	assert_int_equal(linux_module_hash(&l, &mem, &a), 0);
	reads = g.reads;
	assert_int_equal(linux_module_hash(&l, &mem, &b), 0);
	assert_int_equal(a, b);
	assert_true(g.reads - reads <= 4 * (GUEST_NMODULES + 1));
	guest_u32(&g, GUEST_MODULE(0) + GM_STATE, LINUX_MODULE_LIVE);
	assert_int_equal(linux_module_hash(&l, &mem, &b), 0);
	assert_true(a != b);
	guest_put(&g, GUEST_MODULE(1) + GM_NAME, "other", 6);
	assert_int_equal(linux_module_hash(&l, &mem, &c), 0);
	assert_true(b != c);
	guest_list(&g, (uint64_t[]){ GUEST_MODULES, GUEST_MODULE(0) + GM_LIST }, 2);
	assert_int_equal(linux_module_hash(&l, &mem, &d), 0);
	assert_true(c != d && a != d);
	guest_u64(&g, GUEST_MODULE(0) + GM_LIST, 0);
	assert_int_equal(linux_module_hash(&l, &mem, &d), -ENOENT);
}

static void regions(void **state)
{
	struct unwind_region r[2 * GUEST_NMODULES];

	(void)state;
	expect(2, 0, false);
	assert_int_equal(linux_module_load(&l, &mem, &list.module[0], &e), 0);
	assert_int_equal(linux_module_regions(&list, r, 4), 3);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(r[i].start, GUEST_TEXT(i));
		assert_int_equal(r[i].end, GUEST_TEXT(i) + GUEST_TEXT_BYTES);
		assert_ptr_equal(r[i].symbols, i == 1 ? NULL : list.module[0].symbols);
	}
	assert_ptr_equal(r[0].orc, list.module[0].orc);
	assert_ptr_equal(r[2].orc, list.module[0].init_orc);
	assert_int_equal(linux_module_regions(&list, r, 1), 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(offsets),	     TEST(listed),	     TEST(symbols_and_tables),
		TEST(old_letters),   TEST(build_id_by_note), TEST(table_layouts),
		TEST(damaged_parts), TEST(lying_lists),	     TEST(changes),
		TEST(regions),
	};

	return cmocka_run_group_tests_name("linux_module", tests, NULL, NULL);
}

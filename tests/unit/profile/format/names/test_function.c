/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which functions a text means: by name, number and file; with debug information, with STT_FILE alone, with neither. */
#include "profile/format/names/function.h"

#include "symbolizer/core/kimage.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

extern const uint8_t demo_elf[], demo_elf_end[];

struct row {
	uint64_t addr;
	char type;
	const char *name, *file;
};

static struct symtab *make(const struct row *r, size_t n, bool files)
{
	struct symtab *t = symtab_create();

	assert_non_null(t);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(symtab_set_file(t, files ? r[i].file : NULL), 0);
		assert_int_equal(symtab_add(t, r[i].addr, 0x10, r[i].type, r[i].name), 0);
	}
	assert_int_equal(symtab_freeze(t, NULL), 0);
	return t;
}

static const struct row rows[] = {
	{ 0x3000, 't', "load", "compat_binfmt_elf.c" },
	{ 0x1000, 't', "load", "binfmt_elf.c" },
	{ 0x1000, 'T', "alias", NULL },
	{ 0x2000, 'd', "load", "data.c" },
	{ 0x4000, 'T', "one", NULL },
	{ 0x5000, 'd', "only_data", "data.c" },
	{ 0x6000, 't', "moved.llvm.11", "a.c" },
	{ 0x7000, 't', "moved.llvm.22", "b.c" },
	{ 0x8000, 'T', "v@@V1", NULL },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* Fails unless the text means the functions at these addresses. */
static void means(const struct function_table *t, const char *text, enum function_many many,
		  size_t n, const uint64_t *addr)
{
	struct functions f = { .n = 0 };
	struct err e = { 0 };

	if (function_resolve(t, text, many, &f, &e))
		fail_msg("%s: %s", text, e.text);
	assert_int_equal(f.n, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(f.at[i].symbol->addr, addr[i]);
	function_deinit(&f);
}
#define MEANS(t, text, many, ...)                                                          \
	means(t, text, many, sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t), \
	      (const uint64_t[]){ __VA_ARGS__ })

static void refused(const struct function_table *t, const char *text, int code, const char *why)
{
	struct functions f = { .n = 0 };
	struct err e = { 0 };

	assert_int_equal(function_resolve(t, text, FUNCTION_ONE, &f, &e), -code);
	assert_int_equal(f.n, 0);
	assert_null(f.at);
	assert_string_equal(e.text, why);
}

/* A choice that needs no files has the same result with and without them. */
static void names_and_numbers(void **state)
{
	(void)state;
	for (int files = 0; files < 2; files++) {
		struct symtab *t = make(rows, ROWS, files);
		struct function_table table = { .symbols = t, .name = "image" };

		MEANS(&table, "one", FUNCTION_ONE, 0x4000);
		MEANS(&table, "one#1", FUNCTION_ONE, 0x4000);
		MEANS(&table, "one#all", FUNCTION_ONE, 0x4000);
		MEANS(&table, "alias", FUNCTION_ONE, 0x1000);
		MEANS(&table, "load", FUNCTION_EACH, 0x1000, 0x3000);
		MEANS(&table, "load#all", FUNCTION_ONE, 0x1000, 0x3000);
		MEANS(&table, "load#1", FUNCTION_ONE, 0x1000);
		MEANS(&table, "load#2", FUNCTION_EACH, 0x3000);
		/* Data only where no code is called so. */
		MEANS(&table, "only_data", FUNCTION_ONE, 0x5000);
		/* Clang's ThinLTO: several local functions that other files came to use. */
		MEANS(&table, "moved", FUNCTION_EACH, 0x6000, 0x7000);
		MEANS(&table, "moved#2", FUNCTION_ONE, 0x7000);
		MEANS(&table, "moved.llvm.22", FUNCTION_ONE, 0x7000);
		MEANS(&table, "v@@V1", FUNCTION_ONE, 0x8000);
		refused(&table, "none", ENOENT,
			"image has no symbol 'none'; see `kvmprof symbols`");
		refused(&table, "none@a.c#3", ENOENT,
			"image has no symbol 'none'; see `kvmprof symbols`");
		refused(&table, "one#2", ENOENT,
			"'one' is 1 function, there is no #2: one#1 (0x4000)");
		refused(&table, "load#x", ENOENT,
			"image has no symbol 'load#x'; see `kvmprof symbols`");
		refused(&table, "#2", ENOENT, "image has no symbol '#2'; see `kvmprof symbols`");
		refused(&table, "@a.c", ENOENT,
			"image has no symbol '@a.c'; see `kvmprof symbols`");
		refused(&table, "one@", ENOENT,
			"image has no symbol 'one@'; see `kvmprof symbols`");
		symtab_destroy(t);
	}
}

static void files_of_symbols(void **state)
{
	struct symtab *t = make(rows, ROWS, true);
	struct function_table table = { .symbols = t, .name = "image" };

	(void)state;
	MEANS(&table, "load@binfmt_elf.c", FUNCTION_ONE, 0x1000);
	MEANS(&table, "load@compat_binfmt_elf.c", FUNCTION_ONE, 0x3000);
	MEANS(&table, "load@compat_binfmt_elf.c#2", FUNCTION_ONE, 0x3000);
	MEANS(&table, "load@compat_binfmt_elf.c#all", FUNCTION_ONE, 0x3000);
	MEANS(&table, "moved@b.c", FUNCTION_ONE, 0x7000);
#define LIST "load#1 (0x1000, binfmt_elf.c), load#2 (0x3000, compat_binfmt_elf.c)"
	refused(&table, "load", EINVAL,
		"'load' is 2 functions; choose by number, NAME@FILE or address: " LIST);
	refused(&table, "load@elf.c", ENOENT, "no 'load' is in elf.c: " LIST);
	refused(&table, "load#3", ENOENT, "'load' is 2 functions, there is no #3: " LIST);
	refused(&table, "load@fs/binfmt_elf.c", ENOENT,
		"no 'load' is in fs/binfmt_elf.c (symbols name files without their "
		"directories): " LIST);
	refused(&table, "load@binfmt_elf.c#2", ENOENT, "no 'load' is in binfmt_elf.c: " LIST);
	symtab_destroy(t);
}

static void no_files(void **state)
{
	struct symtab *t = make(rows, ROWS, false);
	struct function_table table = { .symbols = t, .name = "image" };

	(void)state;
	refused(&table, "load", EINVAL,
		"'load' is 2 functions; choose by number or address: load#1 (0x1000), load#2 "
		"(0x3000)");
	refused(&table, "load@binfmt_elf.c", ENOENT,
		"'load@binfmt_elf.c': neither debug information nor symbols name the files of "
		"image; "
		"choose by number or address: load#1 (0x1000), load#2 (0x3000)");
	symtab_destroy(t);
}

/* A list is cut between two functions, and says so. */
static void long_lists(void **state)
{
	struct row many[40];
	struct functions f = { .n = 0 };
	struct function_table table = { .name = "image" };
	struct symtab *t;
	struct err e = { 0 };

	(void)state;
	for (size_t i = 0; i < 40; i++)
		many[i] = (struct row){ 0xffffffff81000000 + 64 * i, 't', "init_module",
					"a_file_with_a_long_name.c" };
	t = make(many, 40, true);
	table.symbols = t;
	assert_int_equal(function_resolve(&table, "init_module", FUNCTION_ONE, &f, &e), -EINVAL);
	assert_non_null(strstr(e.text, "'init_module' is 40 functions"));
	assert_non_null(strstr(e.text, "#1 (0xffffffff81000000, a_file_with_a_long_name.c), "));
	assert_non_null(strstr(e.text, " more"));
	assert_string_equal(e.text + strlen(e.text) - 5, " more");
	symtab_destroy(t);
}

/* A name may have as many bytes as a symbol's, which is cut at that length. */
static void longest_names(void **state)
{
	static char longest[SYMTAB_MAX_NAME + 1], numbered[SYMTAB_MAX_NAME + 8];
	const struct row row = { 0x1000, 'T', longest, "a.c" };
	struct function_table table = { .name = "image" };
	struct symtab *t;

	(void)state;
	memset(longest, 'n', sizeof(longest) - 1);
	snprintf(numbered, sizeof(numbered), "%s#1", longest);
	t = make(&row, 1, true);
	table.symbols = t;
	MEANS(&table, longest, FUNCTION_ONE, 0x1000);
	MEANS(&table, numbered, FUNCTION_ONE, 0x1000);
	symtab_destroy(t);
}

/* -- debug information ----------------------------------------------------------------------- */

static unsigned int wanted;

/* The demo's, linked at the same addresses. */
static struct lines *demo_lines(void *ctx, enum function_search how, uint64_t *addr)
{
	(void)addr;
	wanted += how == FUNCTION_WANTED;
	return ctx;
}

/* Names are made, addresses and files are those of functions of the demo guest. */
static void files_of_debug_information(void **state)
{
	static const char *const real[] = { "left_leaf", "demo_main", "job_pick" };
	struct function_table table = { .name = "demo", .lines = demo_lines };
	struct row row[4] = { { 0, 't', "same", "wrong.c" },
			      { 0, 't', "same", "wrong.c" },
			      { 0, 't', "other", "wrong.c" },
			      { 0x10, 't', "same", "elsewhere.c" } };
	size_t len = (size_t)(demo_elf_end - demo_elf);
	struct symtab *demo, *t;
	struct functions f;
	struct lines *l;
	struct kimage k;
	uint64_t at[3];

	(void)state;
	assert_int_equal(kimage_parse(&k, "demo", demo_elf, len, NULL), 0);
	assert_int_equal(kimage_symbols(&k, &demo, NULL), 0);
	assert_int_equal(lines_open(demo_elf, len, "demo", &l, NULL), 0);
	for (int i = 0; i < 3; i++)
		row[i].addr = at[i] = symtab_find(demo, real[i])->addr;
	t = make(row, 4, true);
	table.symbols = t;
	table.ctx = l;
	/* Where nothing has to be told apart, no file is looked for. */
	wanted = 0;
	assert_int_equal(function_resolve(&table, "other", FUNCTION_ONE, &f, NULL), 0);
	assert_null(f.at[0].file);
	function_deinit(&f);
	assert_int_equal(function_resolve(&table, "same#all", FUNCTION_ONE, &f, NULL), 0);
	assert_int_equal(wanted, 0);
	assert_int_equal(f.n, 3);
	function_deinit(&f);
	MEANS(&table, "same@work.c", FUNCTION_ONE, at[0]);
	assert_true(wanted > 0);
	MEANS(&table, "same@demo/work.c", FUNCTION_ONE, at[0]);
	MEANS(&table, "same@guest/demo/work.c", FUNCTION_ONE, at[0]);
	MEANS(&table, "same@main.c", FUNCTION_ONE, at[1]);
	/* Code that debug information does not cover. */
	MEANS(&table, "same@elsewhere.c", FUNCTION_ONE, 0x10);
	assert_int_equal(function_resolve(&table, "same@ork.c", FUNCTION_ONE, &f, NULL), -ENOENT);
	assert_int_equal(function_resolve(&table, "same@wrong.c", FUNCTION_ONE, &f, NULL), -ENOENT);
	assert_string_equal(lines_unit_name(l, at[0]), "guest/demo/work.c");
	assert_null(lines_unit_name(l, 0x10));
	symtab_destroy(t);
	symtab_destroy(demo);
	lines_close(l);
}

static void texts(void **state)
{
	struct function_name n;

	(void)state;
	function_name_parse(&n, "f@fs/a.c#12");
	assert_string_equal(n.name, "f");
	assert_string_equal(n.file, "fs/a.c");
	assert_int_equal(n.number, 12);
	function_name_parse(&n, "f#99999999999999999999");
	assert_int_equal(n.number, UINT32_MAX);
	function_name_parse(&n, "f@#all");
	assert_string_equal(n.name, "f@");
	assert_true(n.all);
	/* As Rust and C++ have them. */
	function_name_parse(&n, "main::{closure#1}");
	assert_string_equal(n.name, "main::{closure#1}");
	assert_int_equal(n.number, 0);
	assert_string_equal(function_short_file("fs/binfmt_elf.c"), "fs/binfmt_elf.c");
	assert_string_equal(
		function_short_file("/home/somebody/with/a/long/path/linux/fs/binfmt_elf.c"),
		"with/a/long/path/linux/fs/binfmt_elf.c");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_numbers),
		cmocka_unit_test(files_of_symbols),
		cmocka_unit_test(no_files),
		cmocka_unit_test(long_lists),
		cmocka_unit_test(longest_names),
		cmocka_unit_test(texts),
		cmocka_unit_test(files_of_debug_information),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Source lines of the demo guest, which is linked in here, and what is no debug information. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "symbolizer/core/kimage.h"
#include "symbolizer/program/lines.h"
#include "symbolizer/program/lines_unit.h"
#include "tests/unit/tiny_elf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

extern const uint8_t demo_elf[], demo_elf_end[];

static size_t demo_len(void)
{
	return (size_t)(demo_elf_end - demo_elf);
}

static struct lines *open_demo(void)
{
	struct err e = { 0 };
	struct lines *l;

	if (lines_open(demo_elf, demo_len(), "demo", &l, &e) < 0)
		fail_msg("%s", e.text);
	return l;
}

static const struct symbol *demo_symbol(const char *name, struct symtab **t)
{
	struct kimage k;

	assert_int_equal(kimage_parse(&k, "demo", demo_elf, demo_len(), NULL), 0);
	assert_int_equal(kimage_symbols(&k, t, NULL), 0);
	assert_non_null(symtab_find(*t, name));
	return symtab_find(*t, name);
}

static bool ends_with(const char *s, const char *end)
{
	return s && strlen(s) >= strlen(end) && !strcmp(s + strlen(s) - strlen(end), end);
}

static void names_function_and_line(void **state)
{
	struct line_frame f[LINES_MAX_FRAMES];
	struct lines *l = open_demo();
	struct symtab *t;
	const struct symbol *s = demo_symbol("left_leaf", &t);
	int n = lines_lookup(l, s->addr, f, LINES_MAX_FRAMES, NULL);

	(void)state;
	assert_true(n >= 1);
	assert_string_equal(f[n - 1].function, "left_leaf");
	assert_true(ends_with(f[n - 1].file, ".c"));
	assert_true(f[n - 1].line > 0);
	assert_false(f[n - 1].inlined);
	symtab_destroy(t);
	lines_close(l);
}

/* Every chain ends in the function that the symbol table has there, and has a line at each step. */
static void chains_end_in_symbols(void **state)
{
	struct line_frame f[LINES_MAX_FRAMES], cut;
	struct lines *l = open_demo();
	unsigned int inlined = 0, checked = 0;
	struct symtab *t;
	const struct symbol *s = demo_symbol("demo_main", &t);

	(void)state;
	for (uint64_t off = 0; off < s->size; off++) {
		int n = lines_lookup(l, s->addr + off, f, LINES_MAX_FRAMES, NULL);

		assert_true(n >= 1);
		assert_string_equal(f[n - 1].function, "demo_main");
		for (int i = 0; i < n; i++) {
			assert_non_null(f[i].function);
			assert_non_null(f[i].file);
			assert_int_equal(f[i].inlined, i < n - 1);
			assert_true(i == 0 || f[i].line > 0);
		}
		/* A caller with less room gets the innermost. */
		assert_int_equal(lines_lookup(l, s->addr + off, &cut, 1, NULL), 1);
		assert_string_equal(cut.function, f[0].function);
		assert_int_equal(cut.line, f[0].line);
		inlined += n > 1;
		checked++;
	}
	assert_true(checked > 100);
	assert_true(inlined > 0);
	symtab_destroy(t);
	lines_close(l);
}

static void elsewhere_is_nothing(void **state)
{
	struct line_frame f[4];
	struct lines *l = open_demo();

	(void)state;
	assert_int_equal(lines_lookup(l, 0x1234, f, 4, NULL), 0);
	assert_int_equal(lines_lookup(l, UINT64_MAX, f, 4, NULL), 0);
	assert_int_equal(lines_lookup(l, 0x1234, f, 0, NULL), 0);
	lines_close(l);
}

static void refuses(const uint8_t *data, size_t len, int code, const char *because)
{
	struct err e = { 0 };
	struct lines *l;

	assert_int_equal(lines_open(data, len, "file", &l, &e), -code);
	if (!strstr(e.text, because) || strncmp(e.text, "file: ", 6) != 0)
		fail_msg("%s", e.text);
}

static void says_why_not(void **state)
{
	struct tiny_elf tiny = { 0 };
	uint8_t bytes[TINY_SIZE], *copy = malloc(demo_len());

	(void)state;
	tiny_build(&tiny, bytes);
	refuses(bytes, sizeof(bytes), ENOENT, "no debug information");
	refuses((const uint8_t *)"hello", 5, EINVAL, "not an ELF file");
	assert_non_null(copy);
	memcpy(copy, demo_elf, demo_len());
	((Elf64_Ehdr *)copy)->e_type = ET_REL;
	refuses(copy, demo_len(), EINVAL, "relocatable");
	free(copy);
}

/* A damaged unit header: nothing can be read, and that is what lookups say. */
static void says_when_damaged(void **state)
{
	uint8_t *copy = malloc(demo_len());
	struct line_frame f[4];
	struct err e = { 0 };
	struct lines *l;
	Elf64_Ehdr eh;

	(void)state;
	assert_non_null(copy);
	memcpy(copy, demo_elf, demo_len());
	memcpy(&eh, copy, sizeof(eh));
	for (unsigned int i = 0; i < eh.e_shnum; i++) {
		Elf64_Shdr s, names;

		memcpy(&s, copy + eh.e_shoff + i * sizeof(s), sizeof(s));
		memcpy(&names, copy + eh.e_shoff + eh.e_shstrndx * sizeof(s), sizeof(s));
		if (!strcmp((char *)copy + names.sh_offset + s.sh_name, ".debug_info"))
			memset(copy + s.sh_offset + 4, 0x77, 2); /* the version */
	}
	assert_int_equal(lines_open(copy, demo_len(), "file", &l, &e), 0);
	for (int i = 0; i < 2; i++) {
		err_clear(&e);
		assert_int_equal(lines_lookup(l, eh.e_entry, f, 4, &e), -EINVAL);
		assert_non_null(strstr(e.text, "no unit of debug information"));
	}
	lines_close(l);
	free(copy);
}

static void finds_the_smallest_range(void **state)
{
	struct line_ranges r = { 0 };

	(void)state;
	assert_null(lines_unit_ranges_find(&r, 5));
	assert_int_equal(lines_unit_ranges_add(&r, 100, 1000, 1), 0);
	assert_int_equal(lines_unit_ranges_add(&r, 200, 300, 2), 0);
	assert_int_equal(lines_unit_ranges_add(&r, 200, 300, 2), 0);
	assert_int_equal(lines_unit_ranges_add(&r, 400, 450, 3), 0);
	assert_int_equal(lines_unit_ranges_add(&r, 7, 7, 4), 0);
	assert_int_equal(lines_unit_ranges_add(&r, 9, 7, 4), 0);
	lines_unit_ranges_sort(&r);
	assert_int_equal(r.n, 4);
	assert_null(lines_unit_ranges_find(&r, 99));
	assert_null(lines_unit_ranges_find(&r, 7));
	assert_int_equal(lines_unit_ranges_find(&r, 100)->owner, 1);
	assert_int_equal(lines_unit_ranges_find(&r, 200)->owner, 2);
	assert_int_equal(lines_unit_ranges_find(&r, 299)->owner, 2);
	assert_int_equal(lines_unit_ranges_find(&r, 300)->owner, 1);
	assert_int_equal(lines_unit_ranges_find(&r, 449)->owner, 3);
	assert_int_equal(lines_unit_ranges_find(&r, 999)->owner, 1);
	assert_null(lines_unit_ranges_find(&r, 1000));
	free(r.at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_function_and_line),
		cmocka_unit_test(chains_end_in_symbols),
		cmocka_unit_test(elsewhere_is_nothing),
		cmocka_unit_test(says_why_not),
		cmocka_unit_test(says_when_damaged),
		cmocka_unit_test(finds_the_smallest_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/kernel/symfile.h"

#include "tests/unit/tiny_elf.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>

#include <cmocka.h>

static uint8_t image[TINY_SIZE], other[TINY_SIZE];

static void parse_ok(struct symfile *f, const void *data, size_t len)
{
	struct err e = { 0 };

	if (symfile_parse(f, "file", data, len, &e) < 0)
		fail_msg("%s", e.text);
}

static void text_forms(void **state)
{
	static const char text[] = "                 U undefined\n"
				   "                 w __gmon_start__\r\n"
				   "0000000000000000 A fixed_percpu_data\n"
				   "0000000000001000 D this_cpu_off\n"
				   "\n"
				   "ffffffff81000000 T _text\r\n"
				   "ffffffff81000010 0000000000000020 t sized\n"
				   "ffffffff81000030 t ns::call(int, long)\n"
				   "ffffffff81000040 W weak\n"
				   "ffffffff81000050 B bss\n"
				   "ffffffffc0000000 t init_module\t[e1000]\n"
				   "ffffffffc0000010 t last\t[e1000]";
	struct symfile f;
	uint64_t off;

	(void)state;
	parse_ok(&f, text, sizeof(text) - 1);
	assert_int_equal(f.kind, SYMFILE_TEXT);
	assert_int_equal(f.build_id_len, 0);
	assert_int_equal(symtab_count(f.symbols), 9);
	assert_string_equal(symtab_lookup(f.symbols, 0xffffffff8100002full, &off)->name, "sized");
	assert_string_equal(symtab_lookup(f.symbols, 0xffffffff81000031ull, &off)->name,
			    "ns::call(int, long)");
	assert_string_equal(symtab_lookup(f.symbols, 0xffffffff8100004full, &off)->name, "weak");
	assert_null(symtab_lookup(f.symbols, 0xffffffff81000050ull, &off));
	assert_null(symtab_lookup(f.symbols, 0x1000, &off));
	assert_string_equal(symtab_lookup(f.symbols, 0xffffffffc0000004ull, &off)->name,
			    "init_module");
	assert_int_equal(symtab_find(f.symbols, "last")->addr, 0xffffffffc0000010ull);
	symfile_deinit(&f);
}

struct one {
	const char *name;
	uint64_t addr, size; /* size 0: not told */
	char type;
};

static void same(const char *text, const struct one *want, size_t n, bool untyped)
{
	struct symfile f;

	parse_ok(&f, text, strlen(text));
	assert_int_equal(f.kind, SYMFILE_TEXT);
	assert_int_equal(f.untyped, untyped);
	assert_int_equal(symtab_count(f.symbols), n);
	for (size_t i = 0; i < n; i++) {
		const struct symbol *s = symtab_find(f.symbols, want[i].name);

		if (!s)
			fail_msg("no %s", want[i].name);
		assert_true(s->addr == want[i].addr);
		assert_int_equal(s->type, want[i].type);
		if (want[i].size)
			assert_int_equal(s->size, want[i].size);
	}
	symfile_deinit(&f);
}

/* The output of nm for C++ in all its forms: names with blanks, and letters that could be types. */
static void demangled_forms(void **state)
{
	static const struct one cxx[] = {
		{ "ns::(anonymous namespace)::hidden(char const*)", 0x12b2, 0x14, 't' },
		{ "int ns::K::get<int>(int)", 0x158e, 0x10, 'W' },
		{ "ns::K::operator()(int) const [clone .isra.0]", 0x1600, 0x20, 't' },
		{ "ns::K::operator T", 0x1700, 0xe, 'T' },
		{ "resolved", 0x1800, 8, 'T' },
		{ "data", 0x9000, 0, 'D' },
	};
	static const struct one plain[] = {
		{ "_start", 0x401000, 0, 't' },
		{ "operator new(unsigned long)", 0x401010, 0, 't' },
		{ "T", 0x401020, 0, 't' },
	};

	(void)state;
	/* nm -CS */
	same("                 U puts@GLIBC_2.2.5\n"
	     "00000000000012b2 0000000000000014 t ns::(anonymous namespace)::hidden(char const*)\n"
	     "000000000000158e 0000000000000010 W int ns::K::get<int>(int)\n"
	     "0000000000001600 0000000000000020 t ns::K::operator()(int) const [clone .isra.0]\n"
	     "0000000000001700 000000000000000e T ns::K::operator T\n"
	     "0000000000001800 0000000000000008 i resolved\n"
	     "0000000000009000 D data\n",
	     cxx, 6, false);
	/* nm -PC */
	same("ns::(anonymous namespace)::hidden(char const*) t 12b2 14\n"
	     "int ns::K::get<int>(int) W 158e 10\n"
	     "puts@GLIBC_2.2.5 U         \n"
	     "ns::K::operator()(int) const [clone .isra.0] t 1600 20\n"
	     "ns::K::operator T T 1700 e\n"
	     "resolved i 1800 8\n"
	     "data D 9000 \n",
	     cxx, 6, false);
	/* A name that is a number, and a type, in both. */
	same("add T 1000 10\nput T 1010 10\n",
	     (struct one[]){ { "add", 0x1000, 0x10, 'T' }, { "put", 0x1010, 0x10, 'T' } }, 2,
	     false);
	same("0x1000 0x10 T d\n0x1010 0x10 T c\n",
	     (struct one[]){ { "d", 0x1000, 0x10, 'T' }, { "c", 0x1010, 0x10, 'T' } }, 2, false);
	/* Addresses and names. */
	same("0x401000 _start\r\n0X401010 operator new(unsigned long)\n\n401020 T\n", plain, 3,
	     true);
}

/* A name of any length is cut in each form; the line is not lost. */
static void long_names(void **state)
{
	static const struct {
		const char *front, *behind;
	} form[] = { { "401000 T ", "\n402000 T end\n" },
		     { "", " T 401000 20\nend T 402000 20\n" },
		     { "0x401000 ", "\n0x402000 end\n" } };
	static char name[100000], text[sizeof(name) + 100];

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	for (size_t i = 0; i < sizeof(form) / sizeof(form[0]); i++) {
		struct symfile f;

		snprintf(text, sizeof(text), "%s%s%s", form[i].front, name, form[i].behind);
		parse_ok(&f, text, strlen(text));
		assert_int_equal(symtab_count(f.symbols), 2);
		assert_int_equal(strlen(symtab_lookup(f.symbols, 0x401004, NULL)->name),
				 SYMTAB_MAX_NAME);
		symfile_deinit(&f);
	}
}

static void refused(void **state)
{
	static char wide[300000];
	static const struct {
		const char *text, *word;
		int code;
	} bad[] = {
		{ "", "no symbols", -EINVAL },
		{ "\n\n", "no symbols", -EINVAL },
		{ "hello world\n", "file:1", -EINVAL },
		{ "ffffffff81000000 T a\nffffffff81000000 T\n", "file:2", -EINVAL },
		{ "fffffffff81000000 T a\n", "file:1", -EINVAL }, /* 17 digits */
		{ "ffffffff81000000 T a\nffffffff81000000 TT a\n", "file:2", -EINVAL },
		{ "main T 401000 20\nfoo T\nbar T 401zz\n", "nm -P", -EINVAL },
		{ "0x401000 main\n0x40zz foo\n", "file:2", -EINVAL },
		{ "ffffffff81000000 T a\001b\n", "file:1", -EINVAL },
		{ "ffffffff81000000 D a\n", "none of code", -EINVAL },
		{ "0000000000000000 T a\n0000000000000000 t b\n", "kptr_restrict", -EPERM },
		{ "ffffffffffffffff B The real System.map is in the linux-image-<version>-dbg "
		  "package\n",
		  "-dbg", -EINVAL },
		{ wide, "line of", -EINVAL },
	};

	(void)state;
	memset(wide, 'a', sizeof(wide) - 1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct symfile f;
		struct err e = { 0 };

		assert_int_equal(symfile_parse(&f, "file", (const uint8_t *)bad[i].text,
					       strlen(bad[i].text), &e),
				 bad[i].code);
		if (!strstr(e.text, bad[i].word))
			fail_msg("\"%s\" does not say \"%s\"", e.text, bad[i].word);
	}
}

static int verify(const void *data, size_t len, struct tiny_elf kernel, const char *word)
{
	struct symfile f;
	struct kimage k;
	struct err e = { 0 };
	int ret;

	tiny_build(&kernel, image);
	assert_int_equal(kimage_parse(&k, "kernel", image, sizeof(image), &e), 0);
	parse_ok(&f, data, len);
	ret = symfile_verify(&f, "file", &k, "kernel", &e);
	if (ret < 0 && (!word || !strstr(e.text, word)))
		fail_msg("\"%s\" does not say \"%s\"", e.text, word);
	symfile_deinit(&f);
	return ret;
}

static void elf_identity(void **state)
{
	struct tiny_elf mine = { .id = 1 }, noid = { .no_note = true },
			noid_other = { .no_note = true };

	(void)state;
	tiny_build(&mine, other);
	assert_int_equal(verify(other, sizeof(other), mine, NULL), 0);
	assert_int_equal(verify(other, sizeof(other), (struct tiny_elf){ .id = 2 }, "build id 01"),
			 -ESTALE);
	/* No id on one side, or on both: the text decides. */
	assert_int_equal(verify(other, sizeof(other),
				(struct tiny_elf){ .no_note = true, .no_sections = true }, NULL),
			 0);
	tiny_build(&noid, other);
	other[TINY_OFF_RODATA + 128] = 0;
	assert_int_equal(verify(other, sizeof(other), mine, NULL), 0);
	noid_other.no_frames = true;
	tiny_build(&noid_other, other);
	assert_int_equal(verify(other, sizeof(other), mine, "text bytes differ"), -ESTALE);
	tiny_build(&(struct tiny_elf){ .no_symbols = true }, other);
	assert_int_equal(symfile_parse(&(struct symfile){ 0 }, "file", other, sizeof(other), NULL),
			 -EINVAL);
}

static void text_identity(void **state)
{
	static char map[4096];
	size_t n = tiny_map(map, sizeof(map), 0), cut;
	char *banner, *end;

	(void)state;
	assert_int_equal(verify(map, n, (struct tiny_elf){ 0 }, NULL), 0);
	assert_int_equal(verify(map, n, (struct tiny_elf){ .no_sections = true }, NULL), 0);
	/* The same addresses, other functions: names differ by 8 bytes. */
	cut = (size_t)(strstr(map, "_text") - map) - 19;
	for (char *p = map; p < map + cut; p = strchr(p, '\n') + 1)
		p[15] = '8';
	assert_int_equal(verify(map, n, (struct tiny_elf){ 0 }, "calls in the image"), -ESTALE);
	n = tiny_map(map, sizeof(map), 0);
	banner = strstr(map, "R linux_banner");
	banner[-3] = '8';
	assert_int_equal(verify(map, n, (struct tiny_elf){ 0 }, "linux_banner"), -ESTALE);
	n = tiny_map(map, sizeof(map), 0);
	end = strstr(map, "B _end");
	end[-5] = '7';
	assert_int_equal(verify(map, n, (struct tiny_elf){ 0 }, "_end"), -ESTALE);
	/* Behind _end is .init.scratch, say, of which the map may or may not have the mark. */
	for (const char *at = "321"; *at; at++) {
		n = tiny_map(map, sizeof(map), 0);
		strstr(map, "B _end")[-5] = *at;
		assert_int_equal(verify(map, n, (struct tiny_elf){ 0 }, NULL), 0);
	}
	/* But it is not before the end of the code. */
	n = tiny_map(map, sizeof(map), 0);
	memcpy(strstr(map, "B _end") - 5, "0100", 4);
	assert_int_equal(verify(map, n, (struct tiny_elf){ 0 }, "_end"), -ESTALE);
	n = tiny_map(map, sizeof(map), 0x10);
	assert_int_equal(verify(map, n, (struct tiny_elf){ 0 }, "_text"), -ESTALE);
	n = tiny_map(map, sizeof(map), 0x1e00000 / 0x200000 * 0x200000);
	assert_int_equal(verify(map, n, (struct tiny_elf){ 0 }, "KASLR"), -ESTALE);
}

/* -- kernels that are not Linux ------------------------------------------------------- */

extern const uint8_t demo_elf[], demo_elf_end[];

enum map_form { BSD, LIST };

/*
 * Returns what nm would print for the demo guest, moved by delta; skip: an address without symbols.
 */
static char *demo_map(enum map_form form, uint64_t delta, uint64_t skip)
{
	size_t len = (size_t)(demo_elf_end - demo_elf), n = 0, size = 256u << 10;
	char *map = malloc(size);
	struct symtab *t;
	struct kimage k;

	assert_int_equal(kimage_parse(&k, "demo", demo_elf, len, NULL), 0);
	assert_int_equal(kimage_symbols(&k, &t, NULL), 0);
	for (size_t i = 0; i < symtab_count(t); i++) {
		const struct symbol *s = symtab_at(t, i);
		unsigned long long addr = s->addr + delta;

		if (s->addr == skip)
			continue;
		if (form == LIST)
			n += (size_t)snprintf(map + n, size - n, "0x%llx %s\n", addr, s->name);
		else
			n += (size_t)snprintf(map + n, size - n, "%016llx %c %s\n", addr, s->type,
					      s->name);
		assert_true(n < size);
	}
	symtab_destroy(t);
	return map;
}

/* Against the demo guest without its symbols, and without sections altogether. */
static int verify_demo(char *map, bool sections, const char *word)
{
	size_t len = (size_t)(demo_elf_end - demo_elf);
	uint8_t *elf = malloc(len);
	struct err e = { 0 };
	struct symfile f;
	struct kimage k;
	Elf64_Ehdr eh;
	int ret;

	memcpy(elf, demo_elf, len);
	memcpy(&eh, elf, sizeof(eh));
	if (!sections)
		eh.e_shoff = eh.e_shnum = eh.e_shstrndx = 0;
	memcpy(elf, &eh, sizeof(eh));
	assert_int_equal(kimage_parse(&k, "stripped", elf, len, NULL), 0);
	assert_string_equal(k.banner, "");
	parse_ok(&f, map, strlen(map));
	ret = symfile_verify(&f, "demo.nm", &k, "stripped", &e);
	if (ret < 0 && (!word || !strstr(e.text, word)))
		fail_msg("\"%s\" does not say \"%s\"", e.text, word);
	symfile_deinit(&f);
	free(elf);
	free(map);
	return ret;
}

static void other_kernels(void **state)
{
	const uint64_t start = 0xffffffff81000000ull; /* guest/demo/demo.lds */

	(void)state;
	for (unsigned int sections = 0; sections < 2; sections++) {
		assert_int_equal(verify_demo(demo_map(BSD, 0, 0), sections, NULL), 0);
		assert_int_equal(verify_demo(demo_map(LIST, 0, 0), sections, NULL), 0);
		assert_int_equal(verify_demo(demo_map(BSD, 0x20, 0), sections, "calls"), -ESTALE);
		assert_int_equal(verify_demo(demo_map(LIST, 0x200000, 0), sections, "calls"),
				 -ESTALE);
		assert_int_equal(verify_demo(demo_map(BSD, 0, start), sections, "entry point"),
				 -ESTALE);
	}
}

/* Two checks that hold are too few, however well. */
static void too_little(void **state)
{
	struct tiny_elf how = { 0 };
	struct err e = { 0 };
	static char map[4096];
	struct symfile f;
	struct kimage k;
	size_t n = 0;

	(void)state;
	tiny_build(&how, image);
	memset(image + TINY_OFF_RODATA, 0, 64);
	assert_int_equal(kimage_parse(&k, "kernel", image, sizeof(image), NULL), 0);
	assert_string_equal(k.banner, "");
	for (unsigned int i = 0; i < TINY_FUNCS; i++)
		n += (size_t)sprintf(map + n, "%llx f%u\n",
				     (unsigned long long)(TINY_TEXT + 16 * i), i);
	parse_ok(&f, map, n);
	assert_int_equal(symfile_verify(&f, "list", &k, "kernel", &e), -ESTALE);
	assert_non_null(strstr(e.text, "too little"));
	symfile_deinit(&f);
	n += (size_t)sprintf(map + n, "%llx _end\n", (unsigned long long)TINY_END);
	parse_ok(&f, map, n);
	assert_int_equal(symfile_verify(&f, "list", &k, "kernel", NULL), 0);
	symfile_deinit(&f);
	/* And one that fails is too much. */
	n += (size_t)sprintf(map + n, "%llx _etext\n", (unsigned long long)TINY_TEXT + 8);
	parse_ok(&f, map, n);
	err_clear(&e);
	assert_int_equal(symfile_verify(&f, "list", &k, "kernel", &e), -ESTALE);
	assert_non_null(strstr(e.text, "_etext"));
	symfile_deinit(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_forms),	 cmocka_unit_test(demangled_forms),
		cmocka_unit_test(long_names),	 cmocka_unit_test(refused),
		cmocka_unit_test(elf_identity),	 cmocka_unit_test(text_identity),
		cmocka_unit_test(other_kernels), cmocka_unit_test(too_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/symfile.h"

#include "tests/unit/tiny_elf.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
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

static void refused(void **state)
{
	static char wide[6000];
	static const struct {
		const char *text, *word;
		int code;
	} bad[] = {
		{ "", "no symbols", -EINVAL },
		{ "\n\n", "no symbols", -EINVAL },
		{ "hello world\n", "file:1", -EINVAL },
		{ "ffffffff81000000 T a\nffffffff81000000 T\n", "file:2", -EINVAL },
		{ "fffffffff81000000 T a\n", "file:1", -EINVAL }, /* 17 digits */
		{ "ffffffff81000000 TT a\n", "file:1", -EINVAL },
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
	n = tiny_map(map, sizeof(map), 0x10);
	assert_int_equal(verify(map, n, (struct tiny_elf){ 0 }, "_text"), -ESTALE);
	n = tiny_map(map, sizeof(map), 0x1e00000 / 0x200000 * 0x200000);
	assert_int_equal(verify(map, n, (struct tiny_elf){ 0 }, "KASLR"), -ESTALE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_forms),
		cmocka_unit_test(refused),
		cmocka_unit_test(elf_identity),
		cmocka_unit_test(text_identity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

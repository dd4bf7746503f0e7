/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/core/kimage.h"

#include "base/file.h"
#include "tests/unit/tiny_elf.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static uint8_t bytes[TINY_SIZE];

static struct kimage parsed(struct tiny_elf t)
{
	struct kimage k;
	struct err e = { 0 };

	tiny_build(&t, bytes);
	if (kimage_parse(&k, "tiny", bytes, sizeof(bytes), &e) < 0)
		fail_msg("%s", e.text);
	return k;
}

static void what_it_says(void **state)
{
	struct kimage k = parsed((struct tiny_elf){ .id = 7 });
	char b[16];
	size_t avail;

	(void)state;
	assert_int_equal(k.nseg, 3);
	assert_int_equal(k.text, TINY_TEXT);
	assert_int_equal(k.etext, TINY_TEXT + 512);
	assert_int_equal(k.end, TINY_END); /* the per-CPU segment at 0 does not count */
	assert_int_equal(k.build_id_len, 20);
	assert_int_equal(k.build_id[0], 7);
	assert_string_equal(k.banner, TINY_BANNER);
	assert_true(k.has_symtab);
	assert_false(k.has_orc);
	assert_int_equal(kimage_read(&k, TINY_RODATA, b, 13), 0);
	assert_memory_equal(b, "Linux version", 13);
	assert_int_equal(kimage_read(&k, TINY_RODATA + 250, b, 16), -EFAULT);
	assert_int_equal(kimage_read(&k, TINY_RODATA + 256, b, 1), -EFAULT); /* .bss */
	assert_non_null(kimage_ptr(&k, TINY_TEXT + 500, &avail));
	assert_int_equal(avail, 12);
	assert_null(kimage_ptr(&k, TINY_TEXT - 1, &avail));
}

/* Since 6.16 init code is in the segment of data, which is not executable. */
static void init_code_among_data(void **state)
{
	struct tiny_elf t = { 0 };
	struct kimage k;
	Elf64_Shdr s;

	(void)state;
	tiny_build(&t, bytes);
	memcpy(&s, bytes + TINY_OFF_SHDRS + 2 * sizeof(s), sizeof(s));
	assert_int_equal(s.sh_addr, TINY_RODATA);
	s.sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	memcpy(bytes + TINY_OFF_SHDRS + 2 * sizeof(s), &s, sizeof(s));
	assert_int_equal(kimage_parse(&k, "tiny", bytes, sizeof(bytes), NULL), 0);
	assert_int_equal(k.etext, TINY_RODATA + s.sh_size);
	/* beyond all segments it is not in the kernel */
	s.sh_addr = TINY_END;
	memcpy(bytes + TINY_OFF_SHDRS + 2 * sizeof(s), &s, sizeof(s));
	assert_int_equal(kimage_parse(&k, "tiny", bytes, sizeof(bytes), NULL), 0);
	assert_int_equal(k.etext, TINY_TEXT + 512);
}

static void without_parts(void **state)
{
	struct kimage k = parsed((struct tiny_elf){ .no_sections = true });
	struct symtab *t = NULL;

	(void)state;
	assert_int_equal(k.etext, TINY_TEXT + 512);
	assert_int_equal(k.build_id_len, 20);
	assert_false(k.has_symtab);
	assert_int_equal(kimage_symbols(&k, &t, NULL), -ENOENT);
	assert_true(kimage_keeps_frame_pointers(&k, NULL));
	k = parsed((struct tiny_elf){ .no_note = true });
	assert_int_equal(k.build_id_len, 0);
	k = parsed((struct tiny_elf){ .orc = true });
	assert_true(k.has_orc);
	assert_false(kimage_keeps_frame_pointers(&k, NULL));
}

static void symbols(void **state)
{
	struct kimage k = parsed((struct tiny_elf){ 0 });
	struct symtab *t;
	struct err e = { 0 };
	uint64_t off;

	(void)state;
	assert_int_equal(kimage_symbols(&k, &t, &e), 0);
	assert_int_equal(symtab_count(t), TINY_FUNCS + 2);
	assert_string_equal(symtab_lookup(t, TINY_TEXT + 16 * 5 + 3, &off)->name, "f5");
	assert_int_equal(off, 3);
	assert_int_equal(symtab_find(t, "f5")->type, 'T');
	assert_int_equal(symtab_find(t, "linux_banner")->type, 'R');
	assert_null(symtab_find(t, "undefined"));
	assert_true(kimage_keeps_frame_pointers(&k, t));
	symtab_destroy(t);
	k = parsed((struct tiny_elf){ .no_frames = true });
	assert_int_equal(kimage_symbols(&k, &t, &e), 0);
	assert_false(kimage_keeps_frame_pointers(&k, t));
	assert_false(kimage_keeps_frame_pointers(&k, NULL));
	symtab_destroy(t);
}

/* This program was built to keep frame pointers, and has symbols of its own. */
static void itself(void **state)
{
	struct file_map m;
	struct kimage k;
	struct symtab *t;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(file_map_open(&m, "/proc/self/exe", 1u << 30, &e), 0);
	assert_int_equal(kimage_parse(&k, "self", m.data, m.len, &e), 0);
	assert_int_equal(kimage_symbols(&k, &t, &e), 0);
	assert_non_null(symtab_find(t, "kimage_parse"));
	assert_in_range(symtab_find(t, "main")->addr, k.text, k.etext);
	/* Local symbols have the file that was compiled, global ones have none. */
	assert_string_equal(symtab_find(t, "itself")->file, "test_kimage.c");
	assert_null(symtab_find(t, "kimage_parse")->file);
	symtab_destroy(t);
	file_map_close(&m);
}

static void refused(void **state)
{
	static const struct {
		unsigned int off;
		uint8_t value;
		const char *word;
	} bad[] = {
		{ 0, 0, "not an ELF" },
		{ 4, 1, "64-bit" },
		{ 18, 40, "machine" },
		{ 16, 1, "executable" },
		{ 54, 1, "program headers" },
		{ 56, 255, "program headers" },
		{ 64 + 8 + 6, 1, "not in the file" }, /* offset of the first segment */
		{ 64 + 32 + 6, 1, "make no sense" },  /* its size in the file */
		{ 58, 1, "section headers" },
		{ 62, 0, NULL }, /* section names lost: still an image */
	};
	struct kimage k;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct tiny_elf t = { 0 };
		struct err e = { 0 };
		int ret;

		tiny_build(&t, bytes);
		bytes[bad[i].off] = bad[i].value;
		ret = kimage_parse(&k, "tiny", bytes, sizeof(bytes), &e);
		assert_int_equal(ret, bad[i].word ? -EINVAL : 0);
		if (bad[i].word && !strstr(e.text, bad[i].word))
			fail_msg("\"%s\" does not say \"%s\"", e.text, bad[i].word);
	}
}

/* Cut at any length: no crash (the sanitizer watches), and no image without its text. */
static void cut(void **state)
{
	struct tiny_elf t = { 0 };
	struct kimage k;

	(void)state;
	tiny_build(&t, bytes);
	for (size_t n = 0; n < TINY_OFF_SHDRS + 7 * sizeof(Elf64_Shdr); n += n < 512 ? 1 : 37) {
		uint8_t *copy = malloc(n ? n : 1);

		memcpy(copy, bytes, n);
		assert_int_equal(kimage_parse(&k, "cut", copy, n, NULL), -EINVAL);
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_it_says),
		cmocka_unit_test(without_parts),
		cmocka_unit_test(symbols),
		cmocka_unit_test(itself),
		cmocka_unit_test(refused),
		cmocka_unit_test(cut),
		cmocka_unit_test(init_code_among_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "tests/unit/tiny_elf.h"

/* A target as target_open() leaves it, with init text at [start, end). */
static void prepare(struct target *t, uint8_t elf[TINY_SIZE], uint64_t start, uint64_t end)
{
	const struct tiny_elf shape = { .id = 1 };

	tiny_build(&shape, elf);
	memset(t, 0, sizeof(*t));
	assert_int_equal(kimage_parse(&t->kernel, "tiny", elf, TINY_SIZE, NULL), 0);
	t->image.elf = elf;
	t->image.elf_len = TINY_SIZE;
	t->init_start = start;
	t->init_end = end;
}

static void test_init_text_survives(void **state)
{
	uint8_t elf[TINY_SIZE], got[16], want[16];
	struct target t;

	(void)state;
	prepare(&t, elf, TINY_TEXT + 16, TINY_TEXT + 64);
	assert_int_equal(kimage_read(&t.kernel, TINY_TEXT + 32, want, sizeof(want)), 0);
	target_settle(&t);
	assert_null(t.kernel.elf);
	memset(elf, 0xcc, sizeof(elf)); /* the file is gone */
	assert_int_equal(target_read_text(&t, TINY_TEXT + 32, got, sizeof(got)), sizeof(got));
	assert_memory_equal(got, want, sizeof(got));
	/* cut at the end of the range */
	assert_int_equal(target_read_text(&t, TINY_TEXT + 56, got, sizeof(got)), 8);
	target_close(&t);
}

/* Symbols may claim more init text than the file has, or absurdly much. */
static void test_wrong_init_text_is_not_made_up(void **state)
{
	static const uint64_t len[] = { 0x800, 1 << 30, UINT64_MAX - TINY_TEXT };
	uint8_t elf[TINY_SIZE], got[16];

	(void)state;
	for (size_t i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
		struct target t;

		prepare(&t, elf, TINY_TEXT, TINY_TEXT + len[i]);
		target_settle(&t);
		assert_int_equal(target_read_text(&t, TINY_TEXT + 32, got, 16), 16);
		assert_memory_equal(got, elf + TINY_OFF_TEXT + 32, 16);
		/* behind the bytes of the file */
		assert_int_equal(target_read_text(&t, TINY_TEXT + 0x400, got, 16), 0);
		t.image.elf = NULL;
		target_close(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_init_text_survives),
		cmocka_unit_test(test_wrong_init_text_is_not_made_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

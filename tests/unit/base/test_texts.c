/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Equal texts are one, also after the set has grown; different ones are not. Texts that people read are UTF-8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/texts.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

#define COUNT 5000u

static void one_each(void **state)
{
	static const char *first[COUNT];
	struct texts t = { 0 };
	char text[32];

	(void)state;
	for (unsigned int round = 0; round < 3; round++)
		for (unsigned int i = 0; i < COUNT; i++) {
			const char *s;

			snprintf(text, sizeof(text), "/src/file%u.c:%u", i % 70, i);
			s = texts_add(&t, text);
			assert_non_null(s);
			assert_true(s != text);
			assert_string_equal(s, text);
			if (round)
				assert_ptr_equal(s, first[i]);
			first[i] = s;
		}
	assert_int_equal(t.all.n, COUNT);
	assert_string_equal(texts_add(&t, ""), "");
	texts_deinit(&t);
	assert_int_equal(t.all.n, 0);
	/* It can be used again. */
	assert_string_equal(texts_add(&t, "again"), "again");
	texts_deinit(&t);
}

static void they_are_made_readable(void **state)
{
	static const struct {
		const char *from, *to;
	} cases[] = {
		{ "", "" },
		{ "main", "main" },
		{ "a\tb\nc\x1b[0m\x7f", "a?b?c?[0m?" },
		{ "\xc3\xa9\xe2\x82\xac", "\xc3\xa9\xe2\x82\xac" },
		{ "x\xff\xfey", "x\xef\xbf\xbd\xef\xbf\xbdy" },
		{ "cut \xe2\x82", "cut \xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xc2\x9b"
		  "1m\xc2\xa0",
		  "?1m\xc2\xa0" },
	};
	char out[64];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(utf8_clean(out, sizeof(out), cases[i].from), strlen(cases[i].to));
		assert_string_equal(out, cases[i].to);
	}
	/* A character is there as a whole, or not at all. */
	assert_int_equal(utf8_clean(out, 4, "ab\xc3\xa9"), 2);
	assert_string_equal(out, "ab");
	assert_int_equal(utf8_clean(out, 1, "ab"), 0);
	assert_string_equal(out, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_each),
		cmocka_unit_test(they_are_made_readable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Equal texts are one, also after the set has grown; different ones are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/texts.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

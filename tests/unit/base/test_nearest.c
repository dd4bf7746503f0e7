/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/nearest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char *of(const char *typed)
{
	static const char *const words[] = { "run",  "report", "script",  "stat",
					     "scan", "top",    "duration" };
	struct nearest n = { .typed = typed };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		nearest_add(&n, words[i]);
	return nearest_word(&n);
}

static void typing_errors(void **state)
{
	(void)state;
	assert_string_equal(of("rnu"), "run"); /* swapped */
	assert_string_equal(of("reprot"), "report");
	assert_string_equal(of("repot"), "report");   /* left out */
	assert_string_equal(of("reportt"), "report"); /* added */
	assert_string_equal(of("ropert"), "report");  /* two replaced */
	assert_string_equal(of("durtion"), "duration");
	assert_string_equal(of("run"), "run");
}

static void other_words(void **state)
{
	char huge[4096];

	(void)state;
	assert_null(of(""));
	assert_null(of("x"));
	assert_null(of("flame"));
	assert_null(of("zzzzzzzz"));
	memset(huge, 'r', sizeof(huge) - 1);
	huge[sizeof(huge) - 1] = 0;
	assert_null(of(huge));
}

static void the_first_of_two_stays(void **state)
{
	struct nearest n = { .typed = "scat" };

	(void)state;
	nearest_add(&n, "stat");
	nearest_add(&n, "scan");
	assert_string_equal(nearest_word(&n), "stat");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(typing_errors),
		cmocka_unit_test(other_words),
		cmocka_unit_test(the_first_of_two_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

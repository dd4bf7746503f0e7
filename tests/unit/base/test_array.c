/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/array.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void grows(void **state)
{
	uint32_t *item = NULL;
	size_t cap = 0;

	(void)state;
	for (uint32_t n = 0; n < 1000; n++) {
		assert_int_equal(ARRAY_ROOM(item, n, cap), 0);
		assert_true(n < cap && cap <= 2048);
		item[n] = n;
	}
	assert_int_equal(ARRAY_FIT(item, 5000, cap), 0);
	assert_true(cap >= 5000);
	for (uint32_t n = 0; n < 1000; n++)
		assert_int_equal(item[n], n);
	free(item);
}

static void has_an_end(void **state)
{
	uint64_t *item = NULL, *before;
	size_t cap = 0;

	(void)state;
	assert_int_equal(ARRAY_ROOM(item, 0, cap), 0);
	before = item;
	assert_int_equal(ARRAY_FIT(item, SIZE_MAX, cap), -ENOMEM);
	assert_int_equal(ARRAY_FIT(item, SIZE_MAX / 4, cap), -ENOMEM);
	assert_ptr_equal(item, before);
	assert_int_equal(cap, 8);
	free(item);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grows),
		cmocka_unit_test(has_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

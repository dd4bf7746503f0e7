/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/digits.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Compares all functions with printf(3) for one number. */
static void check(uint64_t v)
{
	char want[80], got[80];
	size_t n;

	n = digits_dec(got, v);
	assert_int_equal(n, snprintf(want, sizeof(want), "%" PRIu64, v));
	assert_memory_equal(got, want, n);
	n = digits_hex(got, v);
	assert_int_equal(n, snprintf(want, sizeof(want), "%" PRIx64, v));
	assert_memory_equal(got, want, n);
	for (int width = 0; width < 30; width++) {
		n = (size_t)(digits_put(got, v, (size_t)width, ' ') - got);
		assert_int_equal(n, snprintf(want, sizeof(want), "%*" PRIu64, width, v));
		assert_memory_equal(got, want, n);
		n = (size_t)(digits_put(got, v, (size_t)width, '0') - got);
		assert_int_equal(n, snprintf(want, sizeof(want), "%0*" PRIu64, width, v));
		assert_memory_equal(got, want, n);
	}
}

static void test_against_printf(void **state)
{
	(void)state;
	check(0);
	check(UINT64_MAX);
	for (unsigned int bit = 0; bit < 64; bit++) {
		check(UINT64_C(1) << bit);
		check((UINT64_C(1) << bit) - 1);
	}
	for (uint64_t ten = 1; ten < UINT64_MAX / 10; ten *= 10) {
		check(ten);
		check(ten - 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_against_printf) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

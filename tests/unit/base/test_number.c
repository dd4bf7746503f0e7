/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/cleanup.h"
#include "base/number.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void real_numbers(void **state)
{
	static const char *const bad[] = { "", "x", "1x", "nan", "inf", "-1", "1e999", "11", "1 " };
	double v = 7;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(number_real(bad[i], 0, 10, &v));
	assert_true(v == 7);
	assert_true(number_real("0", 0, 10, &v) && v == 0);
	assert_true(number_real("1.5", 0, 10, &v) && v == 1.5);
	assert_true(number_real("1e1", 0, 10, &v) && v == 10);
}

static void times(void **state)
{
	static const char *const bad[] = {
		"", "s", "1x", "nan", "nans", "1 s", "-1s", "11s", "1ms1"
	};
	double v = 7;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(number_seconds(bad[i], 0, 10, &v));
	assert_true(v == 7);
	assert_true(number_seconds("1.5", 0, 10, &v) && v == 1.5);
	assert_true(number_seconds("2s", 0, 10, &v) && v == 2);
	assert_true(number_seconds("250ms", 0, 10, &v) && v == 0.25);
	assert_true(number_seconds("2m", 0, 1e9, &v) && v == 120);
	assert_true(number_seconds("2min", 0, 1e9, &v) && v == 120);
	assert_true(number_seconds("5us", 0, 10, &v) && fabs(v - 5e-6) < 1e-12);
	assert_true(number_seconds("1d", 0, 1e9, &v) && v == 86400);
	assert_true(number_seconds("2h", 0, 1e9, &v) && v == 7200);
}

static void frequencies(void **state)
{
	static const char *const bad[] = { "", "k", "1x", "nan", "1 k", "-1", "11", "1kk", "khz" };
	double v = 7;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(number_hz(bad[i], 0, 10, &v));
	assert_true(v == 7);
	assert_true(number_hz("9.5", 0, 10, &v) && v == 9.5);
	assert_true(number_hz("997Hz", 0, 1e6, &v) && v == 997);
	assert_true(number_hz("1k", 0, 1e6, &v) && v == 1000);
	assert_true(number_hz("2.5kHz", 0, 1e6, &v) && v == 2500);
}

static void whole_numbers(void **state)
{
	static const char *const bad[] = {
		"", "x", "1x", "nan", "-1", "1.5", "18446744073709551616", "1e30", "0x"
	};
	uint64_t v = 7;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(number_whole(bad[i], 0, UINT64_MAX, &v));
	assert_false(number_whole("0", 1, 9, &v));
	assert_false(number_whole("10", 1, 9, &v));
	assert_int_equal(v, 7);
	assert_true(number_whole("9", 1, 9, &v) && v == 9);
	assert_true(number_whole("1e6", 1, UINT64_MAX, &v) && v == 1000000);
	assert_true(number_whole("18446744073709551615", 0, UINT64_MAX, &v) && v == UINT64_MAX);
}

static void sizes(void **state)
{
	static const char *const bad[] = { "",	  "K",	"-1",	" 1",  "1P",
					   "1KX", "1B", "1KBB", "1Ki", "17592186044416" };
	uint64_t v;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(number_size(bad[i], &v));
	assert_true(number_size("3", &v) && v == 3 << 20);
	assert_true(number_size("3k", &v) && v == 3 << 10);
	assert_true(number_size("3KB", &v) && v == 3 << 10);
	assert_true(number_size("3MiB", &v) && v == 3 << 20);
	assert_true(number_size("2gb", &v) && v == UINT64_C(2) << 30);
	assert_true(number_size("1T", &v) && v == UINT64_C(1) << 40);
	assert_true(number_size("3G", &v) && v == UINT64_C(3) << 30);
}

static void ranges(void **state)
{
	static const char *const bad[] = { "", ",", "1,", "1-", "-1", "3-2", "1 ", "+1", "10" };
	struct number_range r = { 0 };
	const char *s = "0,2-9";

	(void)state;
	assert_int_equal(number_range(&s, 9, &r), 1);
	assert_true(r.from == 0 && r.to == 0);
	assert_int_equal(number_range(&s, 9, &r), 1);
	assert_true(r.from == 2 && r.to == 9);
	assert_int_equal(number_range(&s, 9, &r), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		int ret;

		s = bad[i];
		while ((ret = number_range(&s, 9, &r)) > 0)
			;
		assert_int_equal(ret, -EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(real_numbers), cmocka_unit_test(times),
		cmocka_unit_test(frequencies),	cmocka_unit_test(whole_numbers),
		cmocka_unit_test(sizes),	cmocka_unit_test(ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Intervals of shares: published values, the ends, and that they hold what they promise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profile/compare/stats/share.h"

#include <math.h>
#include <stdlib.h>

static void near(double got, double want)
{
	if (fabs(got - want) > 5e-5)
		fail_msg("%.6f, expected %.6f", got, want);
}

/* R. G. Newcombe, "Two-sided confidence intervals for the single proportion" (1998), table I. */
static void test_published(void **state)
{
	static const struct {
		double hits, n, low, high;
	} known[] = {
		{ 81, 263, 0.2553, 0.3662 },
		{ 15, 148, 0.0624, 0.1605 },
		{ 0, 20, 0, 0.1611 },
		{ 1, 29, 0.0061, 0.1718 },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct share_interval s = share_wilson95(known[i].hits / known[i].n, known[i].n);

		near(s.low, known[i].low);
		near(s.high, known[i].high);
	}
}

static void test_ends(void **state)
{
	struct share_interval none = share_wilson95(0.5, 0), all = share_wilson95(1, 20);

	(void)state;
	near(none.low, 0);
	near(none.high, 1);
	near(all.low, 1 - 0.1611);
	assert_true(all.high == 1);
	assert_true(share_wilson95(0, 20).low == 0);
	/* Weights that wrapped around in a damaged file. */
	assert_true(share_wilson95(7, 20).high == 1);
}

static void test_effective(void **state)
{
	(void)state;
	near(share_effective(10 * 3, 10 * 9), 10);
	/* One sample that outweighs all others is one sample. */
	assert_true(share_effective(1e9 + 99, 1e18 + 99) < 1.001);
	near(share_effective(0, 0), 0);
}

/* About 95 % of the intervals around samples of a known share contain it. */
static void test_coverage(void **state)
{
	unsigned int held = 0, runs = 2000;

	(void)state;
	srand48(1);
	for (unsigned int i = 0; i < runs; i++) {
		unsigned int hits = 0;

		for (unsigned int k = 0; k < 500; k++)
			hits += drand48() < 0.07;
		struct share_interval s = share_wilson95(hits / 500.0, 500);

		held += s.low <= 0.07 && 0.07 <= s.high;
	}
	assert_in_range(held, runs * 93 / 100, runs * 97 / 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_published),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_effective),
		cmocka_unit_test(test_coverage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

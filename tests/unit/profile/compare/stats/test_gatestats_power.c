/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Power and its distributions, against published tables and against simulated gates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profile/compare/stats/power.h"

#include <errno.h>
#include <math.h>

static void within(double got, double want, double by)
{
	if (!(fabs(got - want) <= by))
		fail_msg("%.10g instead of %.10g", got, want);
}

/* Tables of any textbook. */
static void test_distributions(void **state)
{
	(void)state;
	within(stats_t_quantile(0.975, 1e9), 1.959963985, 1e-9);
	within(stats_t_quantile(0.01, 1e9), -2.326347874, 1e-9);
	within(stats_t_quantile(0.5, 1e9), 0, 1e-9);
	within(stats_normal_cdf(1), 0.841344746, 1e-9);
	within(stats_normal_cdf(stats_t_quantile(1e-12, 1e9)), 1e-12, 1e-20);
	within(stats_t_quantile(0.975, 1), 12.706204736, 1e-7);
	within(stats_t_quantile(0.99, 3), 4.540702859, 1e-8);
	within(stats_t_quantile(0.975, 10), 2.228138852, 1e-8);
	within(stats_t_quantile(0.005, 30), -2.749995654, 1e-8);
	within(stats_t_quantile(0.975, 1e7), 1.959963985, 1e-6);
	within(stats_t_cdf(0, 4), 0.5, 1e-12);
	within(stats_t_cdf(2, 2), 0.5 + 1 / sqrt(6), 1e-12);
}

/* The example of R's power.t.test(): 20 a side, sd 1, a change of 1, 5 %: power 0.8689528. */
static void test_detectable(void **state)
{
	struct stats_spread s = { .base = 100, .sd = 1, .df = 38 };
	struct stats_rule r = { .worse = STATS_EITHER, .min_effect = 1e-6, .alpha = 0.05 };

	(void)state;
	within(stats_detectable(&s, &r, 20, 20, 0.8689528), 1, 2e-4);
	/* For its power 0.90 it has 22.02110 runs, one-sided 17.84713. */
	assert_true(stats_detectable(&s, &r, 22, 22, 0.9) > 1);
	assert_true(stats_detectable(&s, &r, 23, 23, 0.9) < 1);
	r.worse = STATS_HIGHER;
	assert_true(stats_detectable(&s, &r, 17, 17, 0.9) > 1);
	assert_true(stats_detectable(&s, &r, 18, 18, 0.9) < 1);
	/* A change of the minimum effect is seen in half of all gates. */
	r.min_effect = 1;
	within(stats_detectable(&s, &r, 50, 50, 0.5), 1, 1e-2);
	r = (struct stats_rule){ .unit = STATS_RELATIVE, .min_effect = 0.005 };
	assert_true(stats_detectable(&s, &r, 20, 20, 0.9) < stats_detectable(&s, &r, 10, 10, 0.9));
	/* Points are a hundredth. */
	r.unit = STATS_ABSOLUTE;
	r.min_effect = 0.005 * 100;
	within(stats_detectable(&s, &r, 10, 10, 0.9), 1.7 * 1.0, 0.2);
	/* Four a side cannot reach 1 %; pairs need seven, or are joined. */
	assert_true(isinf(stats_detectable(&s, &r, 4, 4, 0.9)));
	s.paired = true;
	assert_true(stats_detectable(&s, &r, 7, 7, 0.9) < stats_detectable(&s, &r, 5, 5, 0.9));
	/* No spread: the minimum effect is seen. */
	s.sd = 0;
	within(stats_detectable(&s, &r, 10, 10, 0.9), 0.5, 1e-5);
}

/* Power 0.9 of both answers; more noise takes more runs, by its square. */
static void test_suffice(void **state)
{
	struct stats_spread s = { .base = 100, .sd = 1, .df = 18 };
	struct stats_rule r = { .unit = STATS_RELATIVE, .min_effect = 0.01, .miss = 0.1 };
	unsigned int n, few;

	(void)state;
	/* R: power.t.test(delta = 1, sd = 1, sig.level = 0.1, power = 0.9, alternative = "one.sided"): n = 13.8. */
	r.alpha = 0.05;
	n = stats_runs_needed(&s, &r, 0.9);
	assert_int_equal(n, 14);
	/* With an alpha of 1 % twice the threshold asks for as many. */
	r.alpha = 0.01;
	assert_in_range(stats_runs_needed(&s, &r, 0.9), 14, 15);
	s.sd = 4;
	n = stats_runs_needed(&s, &r, 0.9);
	assert_in_range(n, 205, 222);
	s.sd = 5;
	assert_int_equal(stats_runs_needed(&s, &r, 0.9), 0);
	/* Hardly any noise: as many as alpha needs. */
	s.sd = 1e-6;
	few = stats_runs_needed(&s, &r, 0.9);
	assert_int_equal(few, 5);
	s.paired = true;
	assert_in_range(stats_runs_needed(&s, &r, 0.9), 5, 7);
	s.paired = false;
	/* Either direction takes more, less power takes fewer. */
	s.sd = 2;
	n = stats_runs_needed(&s, &r, 0.9);
	assert_true(stats_runs_needed(&s, &r, 0.8) < n);
	r.worse = STATS_EITHER;
	assert_true(stats_runs_needed(&s, &r, 0.9) > n);
}

static int make(struct stats_design *d, unsigned int n, bool pairs)
{
	uint64_t base_at[20], head_at[20];
	struct stats_layout l = { .nbase = n, .nhead = n };

	for (unsigned int i = 0; i < n; i++) {
		base_at[i] = 2 * i;
		head_at[i] = 2 * i + 1;
	}
	if (pairs) {
		l.base_at = base_at;
		l.head_at = head_at;
	}
	return stats_design_init(d, &l, NULL);
}

static void test_spread(void **state)
{
	const double a[] = { 1, 2, 3, 4, 5, 6, 7 }, b[] = { 2, 4, 4, 6, 6, 8, 8 };
	struct stats_spread s = { .sd = 42 };
	struct stats_design d;

	(void)state;
	assert_int_equal(make(&d, 7, false), 0);
	assert_int_equal(stats_spread_of(&d, a, b, &s, NULL), 0);
	within(s.base, 4, 1e-12);
	within(s.df, 12, 0);
	/* Sums of squares 28 and 236 - 38^2 / 7. */
	within(s.sd, sqrt((28 + 236 - 38 * 38 / 7.0) / 12), 1e-12);
	assert_int_equal(stats_spread_of(&d, a, (double[]){ 1, 2, 3, NAN, 5, 6, 7 }, &s, NULL),
			 -EINVAL);
	stats_design_deinit(&d);
	assert_int_equal(make(&d, 7, true), 0);
	assert_int_equal(stats_spread_of(&d, a, b, &s, NULL), 0);
	/* Differences 1, 2, 1, 2, 1, 2, 1: squares 16 - 100 / 7. */
	within(s.sd, sqrt((16 - 100 / 7.0) / 6 / 2), 1e-12);
	within(s.df, 6, 0);
	assert_true(s.paired);
	stats_design_deinit(&d);
	assert_int_equal(make(&d, 1, false), 0);
	assert_int_equal(stats_spread_of(&d, a, b, &s, NULL), -EINVAL);
	stats_design_deinit(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_distributions),
		cmocka_unit_test(test_detectable),
		cmocka_unit_test(test_suffice),
		cmocka_unit_test(test_spread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

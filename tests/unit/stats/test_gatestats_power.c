/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Power and its distributions, against published tables and against simulated gates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profile/stats/power.h"

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
	double lo, hi;

	(void)state;
	within(gate_normal_quantile(0.975), 1.959963985, 1e-9);
	within(gate_normal_quantile(0.01), -2.326347874, 1e-9);
	within(gate_normal_quantile(0.5), 0, 1e-9);
	within(gate_normal_cdf(1), 0.841344746, 1e-9);
	within(gate_normal_cdf(gate_normal_quantile(1e-12)), 1e-12, 1e-20);
	within(gate_t_quantile(0.975, 1), 12.706204736, 1e-7);
	within(gate_t_quantile(0.99, 3), 4.540702859, 1e-8);
	within(gate_t_quantile(0.975, 10), 2.228138852, 1e-8);
	within(gate_t_quantile(0.005, 30), -2.749995654, 1e-8);
	within(gate_t_quantile(0.975, 1e7), 1.959963985, 1e-6);
	within(gate_t_cdf(0, 4), 0.5, 1e-12);
	within(gate_t_cdf(2, 2), 0.5 + 1 / sqrt(6), 1e-12);
	/* Wilson's for 10 of 100, and one-sided at the ends. */
	gate_wilson(10, 100, 0.95, &lo, &hi);
	within(lo, 0.05522914, 1e-6);
	within(hi, 0.17436566, 1e-6);
	gate_wilson(0, 50, 0.95, &lo, &hi);
	assert_true(lo == 0 && hi > 0.05 && hi < 0.1);
	gate_wilson(50, 50, 0.95, &lo, &hi);
	assert_true(hi == 1 && lo > 0.9);
}

/* What R's power.t.test() has in its examples: sd 1, a change of 1, 5 %. */
static void test_power(void **state)
{
	struct gate_spread s = { .base = 100, .sd = 1, .df = 38 };
	struct gate_rule r = { .worse = GATE_EITHER, .min_effect = 1e-6, .alpha = 0.05 };

	(void)state;
	within(gate_power(&s, &r, 20, 20, 1), 0.8689528, 2e-4);
	assert_int_equal(gate_runs_needed(&s, &r, 1, 0.90), 23);
	r.worse = GATE_HIGHER;
	assert_int_equal(gate_runs_needed(&s, &r, 1, 0.90), 18);
	/* A minimum effect of just the change: half. */
	r.min_effect = 1;
	within(gate_power(&s, &r, 50, 50, 1), 0.5, 1e-3);
	assert_int_equal(gate_runs_needed(&s, &r, 1, 0.90), 0);
	/* What is seen is seen. */
	r = (struct gate_rule){ .unit = GATE_RELATIVE, .min_effect = 0.005 };
	within(gate_power(&s, &r, 10, 10, gate_detectable(&s, &r, 10, 10, 0.9)), 0.9, 1e-4);
	assert_true(gate_detectable(&s, &r, 20, 20, 0.9) < gate_detectable(&s, &r, 10, 10, 0.9));
	/* Points are a hundredth. */
	r.unit = GATE_ABSOLUTE;
	r.min_effect = 0.005 * 100;
	within(gate_detectable(&s, &r, 10, 10, 0.9), 1.7 * 1.0, 0.2);
	/* Four a side cannot reach 1 %; pairs need seven, or are joined. */
	assert_true(isinf(gate_detectable(&s, &r, 4, 4, 0.9)));
	within(gate_power(&s, &r, 4, 4, 1e6), 0, 0);
	s.paired = true;
	assert_true(gate_detectable(&s, &r, 7, 7, 0.9) < gate_detectable(&s, &r, 5, 5, 0.9));
	/* No spread: all or nothing. */
	s.sd = 0;
	within(gate_power(&s, &r, 10, 10, 0.5), 1, 0);
	within(gate_power(&s, &r, 10, 10, 0.49), 0, 0);
	assert_int_equal(gate_runs_needed(&s, &r, 1, 0.9), 5);
	/* To pass: 1 sd excluded at 10 % by 90 %: two sides of 1.28, squared, doubled. */
	s = (struct gate_spread){ .base = 100, .sd = 1, .df = 38 };
	r.min_effect = 1;
	within(gate_runs_to_pass(&s, &r, 0.9), 2 * 2.5631 * 2.5631, 1.5);
	r.worse = GATE_EITHER;
	assert_true(gate_runs_to_pass(&s, &r, 0.9) > 14);
}

static int make(struct gate_design *d, unsigned int n, bool pairs)
{
	uint64_t base_at[20], head_at[20];
	struct gate_layout l = { .nbase = n, .nhead = n };

	for (unsigned int i = 0; i < n; i++) {
		base_at[i] = 2 * i;
		head_at[i] = 2 * i + 1;
	}
	if (pairs) {
		l.base_at = base_at;
		l.head_at = head_at;
	}
	return gate_design_init(d, &l, NULL);
}

static void test_spread(void **state)
{
	const double a[] = { 1, 2, 3, 4, 5, 6, 7 }, b[] = { 2, 4, 4, 6, 6, 8, 8 };
	struct gate_spread s = { .sd = 42 };
	struct gate_design d;

	(void)state;
	assert_int_equal(make(&d, 7, false), 0);
	assert_int_equal(gate_spread_of(&d, a, b, &s, NULL), 0);
	within(s.base, 4, 1e-12);
	within(s.df, 12, 0);
	/* Sums of squares 28 and 236 - 38^2 / 7. */
	within(s.sd, sqrt((28 + 236 - 38 * 38 / 7.0) / 12), 1e-12);
	assert_int_equal(gate_spread_of(&d, a, (double[]){ 1, 2, 3, NAN, 5, 6, 7 }, &s, NULL),
			 -EINVAL);
	gate_design_deinit(&d);
	assert_int_equal(make(&d, 7, true), 0);
	assert_int_equal(gate_spread_of(&d, a, b, &s, NULL), 0);
	/* Differences 1, 2, 1, 2, 1, 2, 1: squares 16 - 100 / 7. */
	within(s.sd, sqrt((16 - 100 / 7.0) / 6 / 2), 1e-12);
	within(s.df, 6, 0);
	assert_true(s.paired);
	gate_design_deinit(&d);
	assert_int_equal(make(&d, 1, false), 0);
	assert_int_equal(gate_spread_of(&d, a, b, &s, NULL), -EINVAL);
	gate_design_deinit(&d);
}

/* Gates simulated from runs agree with the formula for them. */
static void test_resample(void **state)
{
	double a[10], b[10], power;
	struct gate_rule r = { .unit = GATE_RELATIVE, .min_effect = 0.01 };
	struct gate_spread s;

	(void)state;
	for (unsigned int i = 0; i < 10; i++) {
		/* Normal scores. */
		a[i] = 100 + gate_normal_quantile((i + 0.5) / 10);
		b[i] = 100 + gate_normal_quantile(((i * 7) % 10 + 0.5) / 10);
	}
	for (unsigned int pairs = 0; pairs < 2; pairs++) {
		struct gate_design d;

		assert_int_equal(make(&d, 10, pairs), 0);
		assert_int_equal(gate_spread_of(&d, a, b, &s, NULL), 0);
		assert_int_equal(
			gate_power_resample(&d, &r, a, b, 8, 8, 0.02, 400, 1, &power, NULL), 0);
		within(power, gate_power(&s, &r, 8, 8, 0.02), 0.12);
		assert_int_equal(gate_power_resample(&d, &r, a, b, 8, 8, 0, 200, 1, &power, NULL),
				 0);
		assert_true(power < 0.05);
		assert_int_equal(gate_power_resample(&d, &r, a, b, 8, 8, 0, 0, 1, &power, NULL),
				 -EINVAL);
		gate_design_deinit(&d);
	}
}

static void test_shares(void **state)
{
	double share[10], samples[10];
	struct gate_rule r = { .unit = GATE_POINTS, .min_effect = 0.1 };
	struct gate_shares s;
	unsigned int runs = 0;
	double m;

	(void)state;
	for (unsigned int i = 0; i < 10; i++) {
		share[i] = 0.05 + 0.001 * (i % 2 ? 1 : -1);
		samples[i] = 1e9;
	}
	assert_int_equal(gate_shares_of(share, samples, 10, 1, &s, NULL), 0);
	within(s.p, 0.05, 1e-12);
	/* Ten values of +-0.001: variance 1e-5 / 9; counting adds next to nothing. */
	within(s.tau, sqrt(1e-5 / 9), 1e-7);
	/* Counting alone explains such a spread of 48 samples. */
	for (unsigned int i = 0; i < 10; i++)
		samples[i] = 48;
	assert_int_equal(gate_shares_of(share, samples, 10, 1, &s, NULL), 0);
	within(s.tau, 0, 0);
	/* Then samples are all: se^2 = 2 p (1 - p) / (10 m), with (2.55 + 1.33)^2 se^2 = 0.002^2. */
	m = gate_samples_needed(&s, &r, 10, 0.2, 0.9, &runs);
	assert_int_equal(runs, 10);
	within(m, 2 * 0.05 * 0.95 / 10 / pow(0.002 / 3.88, 2), 2500);
	within(gate_points_detectable(&s, &r, 10, m, 0.9), 0.2, 1e-3);
	/* Twice the design effect, twice the samples. */
	s.deff = 2;
	within(gate_samples_needed(&s, &r, 10, 0.2, 0.9, NULL) / m, 2, 0.01);
	/* Runs that differ too much: samples do not help, runs do. */
	s.tau = 0.003;
	assert_true(isinf(gate_samples_needed(&s, &r, 10, 0.2, 0.9, &runs)));
	assert_true(runs > 50 && runs < 100);
	assert_true(gate_samples_needed(&s, &r, runs * 2, 0.2, 0.9, NULL) < 1e6);
	assert_int_equal(gate_shares_of(share, samples, 1, 1, &s, NULL), -EINVAL);
	assert_int_equal(gate_shares_of(share, samples, 10, 0.5, &s, NULL), -EINVAL);
	share[3] = 1.5;
	assert_int_equal(gate_shares_of(share, samples, 10, 1, &s, NULL), -EINVAL);
	share[3] = NAN;
	assert_int_equal(gate_shares_of(share, samples, 10, 1, &s, NULL), -EINVAL);
	share[3] = 0.05;
	samples[3] = 0;
	assert_int_equal(gate_shares_of(share, samples, 10, 1, &s, NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_distributions), cmocka_unit_test(test_power),
		cmocka_unit_test(test_spread),	      cmocka_unit_test(test_resample),
		cmocka_unit_test(test_shares),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

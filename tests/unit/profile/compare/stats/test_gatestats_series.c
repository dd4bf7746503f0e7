/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Change points of a history. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profile/compare/stats/change.h"
#include "profile/compare/stats/deals.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void near(double got, double want)
{
	if (!(fabs(got - want) <= 1e-9 * (1 + fabs(want))))
		fail_msg("%.12g instead of %.12g", got, want);
}

/* Small, the same in each run, and without a trend. */
static double wobble(unsigned int i)
{
	uint64_t state = i;

	return (double)(stats_random(&state) >> 40) / (1 << 24) - 0.5;
}

/* -- change points -------------------------------------------------------------------------------- */

static size_t changes(const double *v, size_t nvalues, const struct stats_change_options *o,
		      struct stats_change *c)
{
	struct err e = { 0 };
	size_t n = 99;

	if (stats_changes(v, nvalues, o, c, &n, &e) < 0)
		fail_msg("%s", e.text);
	return n;
}

static void test_changes(void **state)
{
	struct stats_change c[STATS_CHANGES_MAX];
	struct stats_change_options o = { 0 };
	double v[120], energy;

	(void)state;
	/* Ten and ten, one apart: m k / (m + k) = 5 times 2 E|x - y| = 2. */
	for (unsigned int i = 0; i < 20; i++)
		v[i] = 7 + (i >= 10);
	assert_int_equal(changes(v, 20, &o, c), 1);
	assert_int_equal(c[0].at, 10);
	near(c[0].before, 7);
	near(c[0].after, 8);
	near(c[0].energy, 10);
	assert_true(c[0].p <= 0.01);
	/* {0, 2} and {5, 9}, repeated: 2 * 6 - 4/3 * ... by the definition. */
	energy = 0;
	for (unsigned int i = 0; i < 20; i++)
		v[i] = i < 8 ? i % 2 * 2 : 5 + i % 2 * 4;
	for (unsigned int i = 0; i < 20; i++) {
		for (unsigned int j = i + 1; j < 20; j++) {
			double between = fabs(v[i] - v[j]);

			energy += j < 8	   ? -2 * between / (8 * 7)
				  : i >= 8 ? -2 * between / (12 * 11)
					   : 2 * between / (8 * 12);
		}
	}
	assert_int_equal(changes(v, 20, &o, c), 1);
	assert_int_equal(c[0].at, 8);
	near(c[0].energy, energy * 8 * 12 / 20);
	/* Up at 40, down at 90; the same again with the same seed. */
	for (unsigned int i = 0; i < 120; i++)
		v[i] = 1e6 + wobble(i) + (i >= 40 ? 1.5 : 0) - (i >= 90 ? 2.5 : 0);
	assert_int_equal(changes(v, 120, &o, c), 2);
	assert_int_equal(c[0].at, 40);
	assert_int_equal(c[1].at, 90);
	near(c[0].after, c[1].before);
	assert_true(c[0].after - c[0].before > 1.3 && c[1].after - c[1].before < -2.3);
	/* Steps that do not matter are left out; the one that does spans what remains. */
	o.min_effect = 1.7e-6;
	assert_int_equal(changes(v, 120, &o, c), 1);
	assert_int_equal(c[0].at, 90);
	o.min_effect = 1;
	assert_int_equal(changes(v, 120, &o, c), 0);
	/* Spread changes as well. */
	o = (struct stats_change_options){ 0 };
	for (unsigned int i = 0; i < 120; i++)
		v[i] = 100 + wobble(i) * (i < 60 ? 1 : 12);
	assert_int_equal(changes(v, 120, &o, c), 1);
	assert_true(c[0].at > 55 && c[0].at < 75);
	/* Nothing to find. */
	for (unsigned int i = 0; i < 120; i++)
		v[i] = 100 + wobble(i);
	assert_int_equal(changes(v, 120, &o, c), 0);
	for (unsigned int i = 0; i < 120; i++)
		v[i] = i % 2 ? 0.3 : 0.1 + 0.2;
	assert_int_equal(changes(v, 120, &o, c), 0);
	assert_int_equal(changes(v, 0, &o, c), 0);
	assert_int_equal(changes(v, 5, &o, c), 0);
}

static const struct stats_change_options of_levels = { .levels = true, .dependent = true };

/* Roughly normal, sd 1. */
static double noise(uint64_t *state)
{
	double sum = -6;

	for (unsigned int i = 0; i < 12; i++)
		sum += (double)(stats_random(state) >> 11) * 0x1p-53;
	return sum;
}

/* 100 values, a step of 3 at 30; from 60 on the host is noisy. */
static void test_noise_hides_nothing(void **state)
{
	struct stats_change c[STATS_CHANGES_MAX];
	double v[100];
	uint64_t random = 5;

	(void)state;
	for (unsigned int k = 0; k < 20; k++) {
		size_t n, at30 = 0, at60 = 0;

		for (unsigned int i = 0; i < 100; i++)
			v[i] = 100 + (i >= 30) * 3 + noise(&random) * (i < 60 ? 0.1 : 15);
		n = changes(v, 100, &of_levels, c);
		for (size_t i = 0; i < n; i++) {
			at30 += c[i].at == 30;
			at60 += c[i].at > 35;
		}
		assert_int_equal(at30, 1);
		near(round(c[0].before), 100);
		near(round(c[0].after), 103);
		/* The mean of so noisy a part is no level of its own, but in one of a hundred. */
		assert_true(at60 <= 1);
	}
	/* Without the option a change of spread is a change. */
	for (unsigned int i = 0; i < 100; i++)
		v[i] = 100 + noise(&random) * (i < 60 ? 0.1 : 15);
	assert_int_equal(changes(v, 100, &(struct stats_change_options){ 0 }, c), 1);
	assert_int_equal(changes(v, 100, &of_levels, c), 0);
}

/* Each value has a part of the one before: without the option most such series have changes. */
static void test_dependent_values(void **state)
{
	const struct stats_change_options plain = { 0 };
	const double phis[] = { 0.8, 0.95 };
	struct stats_change c[STATS_CHANGES_MAX];
	double v[100];
	uint64_t random = 11;

	(void)state;
	for (unsigned int k = 0; k < 2; k++) {
		unsigned int found = 0, alarms = 0, steps = 0;
		double last = noise(&random);

		for (unsigned int round = 0; round < 20; round++) {
			for (unsigned int i = 0; i < 100; i++) {
				last = phis[k] * last +
				       sqrt(1 - phis[k] * phis[k]) * noise(&random);
				v[i] = 100 + last;
			}
			alarms += changes(v, 100, &plain, c) > 0;
			found += changes(v, 100, &of_levels, c) > 0;
			for (unsigned int i = 60; i < 100; i++)
				v[i] += 12;
			steps += changes(v, 100, &of_levels, c) > 0 && c[0].at >= 58 &&
				 c[0].at <= 62;
		}
		assert_true(alarms > 12);
		assert_true(found <= 1);
		assert_true(steps >= 18);
	}
}

/* A drift has no place where it happened, unlike a step. */
static void test_gradual(void **state)
{
	struct stats_change c[STATS_CHANGES_MAX];
	double v[60];
	uint64_t random = 17;
	size_t n;

	(void)state;
	for (unsigned int i = 0; i < 60; i++)
		v[i] = 100 + noise(&random) / 5 + i / 10.0;
	n = changes(v, 60, &of_levels, c);
	assert_true(n >= 1);
	for (size_t i = 0; i < n; i++)
		assert_true(c[i].gradual && c[i].after > c[i].before);
	for (unsigned int i = 0; i < 60; i++)
		v[i] = 100 + noise(&random) / 5 + (i >= 40 ? 3 : 0);
	assert_int_equal(changes(v, 60, &of_levels, c), 1);
	assert_int_equal(c[0].at, 40);
	assert_false(c[0].gradual);
}

/* The option costs little where values are independent. */
static void test_independent_values(void **state)
{
	struct stats_change c[STATS_CHANGES_MAX];
	unsigned int steps = 0, alarms = 0;
	double v[100];
	uint64_t random = 23;

	(void)state;
	for (unsigned int round = 0; round < 40; round++) {
		for (unsigned int i = 0; i < 100; i++)
			v[i] = 100 + noise(&random);
		alarms += changes(v, 100, &of_levels, c) > 0;
		for (unsigned int i = 60; i < 100; i++)
			v[i] += 3;
		steps += changes(v, 100, &of_levels, c) > 0 && c[0].at >= 58 && c[0].at <= 62;
	}
	assert_true(alarms <= 2);
	assert_true(steps >= 37);
}

/* Few values have few arrangements, and no size of a change makes up for that. */
static void test_least_p(void **state)
{
	struct stats_change c[STATS_CHANGES_MAX];
	double v[16];

	(void)state;
	near(stats_change_least_p(3, 3), 0.1);
	near(stats_change_least_p(3, 9), 2.0 / 220);
	near(stats_change_least_p(5, 5), 2.0 / 252);
	near(stats_change_least_p(2, 90), 1);
	assert_false(stats_change_is_possible(9, 0.01));
	assert_true(stats_change_is_possible(10, 0.01));
	assert_false(stats_change_is_possible(11, 0.0025));
	assert_true(stats_change_is_possible(12, 0.0025));
	for (size_t n = 6; n <= 13; n++)
		for (size_t right = 3; right + 3 <= n; right++) {
			size_t found;

			for (size_t i = 0; i < n; i++)
				v[i] = 100 + wobble((unsigned int)i) + (i + right >= n ? 1000 : 0);
			found = changes(v, n, &of_levels, c);
			assert_int_equal(found, stats_change_least_p(n - right, right) <= 0.01);
			if (found)
				assert_int_equal(c[0].at, n - right);
		}
}

static void test_changes_refused(void **state)
{
	static double v[STATS_HISTORY_MAX + 1];
	struct stats_change c[STATS_CHANGES_MAX];
	struct stats_change_options o = { 0 };
	size_t n = 99;

	(void)state;
	assert_int_equal(stats_changes(v, STATS_HISTORY_MAX + 1, &o, c, &n, NULL), -EINVAL);
	v[3] = NAN;
	assert_int_equal(stats_changes(v, 10, &o, c, &n, NULL), -EINVAL);
	v[3] = 0;
	o.shuffles = 10;
	assert_int_equal(stats_changes(v, 10, &o, c, &n, NULL), -EINVAL);
	o = (struct stats_change_options){ .alpha = 0.001 };
	assert_int_equal(stats_changes(v, 10, &o, c, &n, NULL), -EINVAL);
	o = (struct stats_change_options){ .min_effect = NAN };
	assert_int_equal(stats_changes(v, 10, &o, c, &n, NULL), -EINVAL);
	assert_int_equal(n, 99);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_noise_hides_nothing),
		cmocka_unit_test(test_dependent_values),
		cmocka_unit_test(test_gradual),
		cmocka_unit_test(test_independent_values),
		cmocka_unit_test(test_least_p),
		cmocka_unit_test(test_changes_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

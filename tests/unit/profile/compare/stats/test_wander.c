/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether dependence of each value on the one before explains a series. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profile/compare/stats/deals.h"
#include "profile/compare/stats/wander.h"

#include <math.h>

#define N 60u

static const struct wander_options options = { .least = 3, .alpha = 0.05, .simulated = 199 };

/* Roughly normal, sd 1. */
static double noise(uint64_t *state)
{
	double sum = -6;

	for (unsigned int i = 0; i < 12; i++)
		sum += (double)(stats_random(state) >> 11) * 0x1p-53;
	return sum;
}

/* Simulates an AR(1) of N values with a standard deviation of 1; phi = 1: a random walk with steps of 1. */
static void wander(double *v, double phi, uint64_t *state)
{
	double last = noise(state);

	for (unsigned int i = 0; i < N; i++) {
		last = phi * last + (phi < 1 ? sqrt(1 - phi * phi) : 1) * noise(state);
		v[i] = 1000 + last;
	}
}

/* p of 0.05 is rare without a change, whatever the dependence: a binomial of 100 exceeds 14 in one of 10,000 tests. */
static void test_level_of_test(void **state)
{
	const double phis[] = { 0, 0.5, 0.8, 0.95, 1 };
	uint64_t random = 3, simulation = 4;
	double v[N], room[2 * N];

	(void)state;
	for (size_t k = 0; k < sizeof(phis) / sizeof(*phis); k++) {
		unsigned int levels = 0, spreads = 0;

		for (unsigned int i = 0; i < 100; i++) {
			struct wander_p p;

			wander(v, phis[k], &random);
			p = wander_test(v, N, &options, &simulation, room);
			levels += p.level <= 0.05;
			spreads += p.spread <= 0.05;
		}
		assert_true(levels <= 14);
		assert_true(spreads <= 14);
	}
}

enum change { STEP, NEWEST, STAIRS, DRIFT, SPREAD };

static double change_at(enum change c, unsigned int i)
{
	switch (c) {
	case STEP:
		return i >= 40 ? 4 : 0;
	case NEWEST:
		return i >= N - 3 ? 8 : 0;
	case STAIRS:
		return 6 * (i / 12);
	case DRIFT:
		return 12.0 * i / N;
	default:
		return 0;
	}
}

/* What dependence does not explain is found in nearly all of 20 series. */
static void test_changes_are_found(void **state)
{
	uint64_t random = 5, simulation = 6;
	double v[N], room[2 * N];

	(void)state;
	for (enum change c = STEP; c <= SPREAD; c++) {
		unsigned int levels = 0, spreads = 0, drifts = 0;

		for (unsigned int k = 0; k < 20; k++) {
			struct wander_p p;

			for (unsigned int i = 0; i < N; i++)
				v[i] = 1000 + change_at(c, i) +
				       noise(&random) * (c == SPREAD && i >= 30 ? 9 : 1);
			p = wander_test(v, N, &options, &simulation, room);
			levels += p.level <= 0.05;
			spreads += p.spread <= 0.05;
			drifts += p.drifts;
		}
		if (c == SPREAD)
			assert_true(spreads == 20);
		else
			assert_true(levels >= 19);
		if (c == DRIFT)
			assert_true(drifts >= 18);
		else if (c == STEP || c == STAIRS)
			assert_true(drifts <= 2);
	}
}

/* Values without any noise but that of rounding: equal ones show nothing, and a step shows. */
static void test_rounding(void **state)
{
	struct wander_options o = options;
	double v[N], room[2 * N];
	struct wander_fit fit;
	uint64_t simulation = 6;

	(void)state;
	o.resolution = 0.5;
	for (unsigned int i = 0; i < N; i++)
		v[i] = 7;
	fit = wander_fit(v, N, &o, room);
	assert_true(fit.levels < 1e-9 && fit.line < 1e-9 && fit.spreads < 1e-9);
	for (unsigned int i = 0; i < N; i++)
		v[i] = i % 2;
	assert_true(wander_test(v, N, &o, &simulation, room).level > 0.05);
	for (unsigned int i = 30; i < N; i++)
		v[i] = 1e6;
	assert_true(wander_test(v, N, &o, &simulation, room).level <= 0.05);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_level_of_test),
		cmocka_unit_test(test_changes_are_found),
		cmocka_unit_test(test_rounding),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

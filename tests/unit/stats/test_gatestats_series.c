/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Of the gate: change points and modes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profile/compare/stats/change.h"
#include "profile/compare/stats/modes.h"

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

	return (double)(runstats_random(&state) >> 40) / (1 << 24) - 0.5;
}

/* -- change points -------------------------------------------------------------------------------- */

static size_t changes(const double *v, size_t nvalues, const struct gate_change_options *o,
		      struct gate_change *c)
{
	struct err e = { 0 };
	size_t n = 99;

	if (gate_changes(v, nvalues, o, c, &n, &e) < 0)
		fail_msg("%s", e.text);
	return n;
}

static void test_changes(void **state)
{
	struct gate_change c[GATE_CHANGES_MAX];
	struct gate_change_options o = { 0 };
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
	o = (struct gate_change_options){ 0 };
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

static void test_changes_refused(void **state)
{
	static double v[GATE_HISTORY_MAX + 1];
	struct gate_change c[GATE_CHANGES_MAX];
	struct gate_change_options o = { 0 };
	size_t n = 99;

	(void)state;
	assert_int_equal(gate_changes(v, GATE_HISTORY_MAX + 1, &o, c, &n, NULL), -EINVAL);
	v[3] = NAN;
	assert_int_equal(gate_changes(v, 10, &o, c, &n, NULL), -EINVAL);
	v[3] = 0;
	o.shuffles = 10;
	assert_int_equal(gate_changes(v, 10, &o, c, &n, NULL), -EINVAL);
	o = (struct gate_change_options){ .alpha = 0.001 };
	assert_int_equal(gate_changes(v, 10, &o, c, &n, NULL), -EINVAL);
	o = (struct gate_change_options){ .segment = 1 };
	assert_int_equal(gate_changes(v, 10, &o, c, &n, NULL), -EINVAL);
	o = (struct gate_change_options){ .min_effect = NAN };
	assert_int_equal(gate_changes(v, 10, &o, c, &n, NULL), -EINVAL);
	assert_int_equal(n, 99);
	/* Blocks longer than a segment leave nothing to shuffle: nothing is significant. */
	for (unsigned int i = 0; i < 20; i++)
		v[i] = i >= 10;
	o = (struct gate_change_options){ .block = 20 };
	assert_int_equal(changes(v, 20, &o, c), 0);
}

/* -- modes ---------------------------------------------------------------------------------------- */

static void test_dip(void **state)
{
	/*
	 * From a program that searches the least distance to a unimodal distribution by the
	 * definition. Even spacing is as unimodal as can be: 1/(2n). Two groups of n/2 without
	 * width would have 1/4.
	 */
	static const struct {
		double dip;
		unsigned int n;
		double v[14];
	} known[] = {
		{ 1 / 16.0, 8, { 1, 2, 3, 4, 5, 6, 7, 8 } },
		{ 0.2, 6, { 0, 0.1, 0.2, 1, 1.1, 1.2 } },
		{ 0.225, 4, { 0, 1, 10, 11 } },
		{ 0.175, 8, { 1, 2, 3, 4, 11, 12, 13, 14 } },
		{ 0.5, 1, { 3 } },
		{ 1 / 8.0, 4, { 2, 2, 2, 2 } },
	};
	double dip;

	(void)state;
	for (unsigned int k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
		assert_int_equal(gate_dip(known[k].v, known[k].n, &dip), 0);
		near(dip, known[k].dip);
	}
	assert_int_equal(gate_dip(known[0].v, 0, &dip), -EINVAL);
}

static bool multimodal(const double *v, unsigned int n)
{
	double limit = 0;
	bool seen;

	assert_int_equal(gate_modes_seen(v, n, &limit, &seen), 0);
	return seen;
}

static void test_modes(void **state)
{
	double v[40], limit = 0, first;
	bool seen;

	(void)state;
	for (unsigned int i = 0; i < 40; i++)
		v[i] = (i % 5 < 2 ? 130 : 100) + 4 * wobble(i);
	assert_int_equal(gate_modes_seen(v, 40, &limit, &seen), 0);
	assert_true(seen && limit > 0);
	/* The limit depends on the number of values alone, and is found once. */
	first = limit;
	assert_int_equal(gate_modes_seen(v, 40, &limit, &seen), 0);
	assert_true(seen && limit == first);
	/* One group; ticks of a clock; all equal; too few to say. */
	for (unsigned int i = 0; i < 40; i++)
		v[i] = 100 + wobble(i) + wobble(i + 100) + wobble(i + 200);
	assert_false(multimodal(v, 40));
	for (unsigned int i = 0; i < 40; i++)
		v[i] = rint(v[i] * 3);
	assert_false(multimodal(v, 40));
	for (unsigned int i = 0; i < 40; i++)
		v[i] = 5;
	assert_false(multimodal(v, 40));
	assert_false(multimodal((double[]){ 0, 0.1, 9, 9.1 }, 4));
}

/* A gate says that runs fall into groups, also when only both sides together show it. */
static void test_gate_modes(void **state)
{
	struct gate_layout l = { .nbase = 12, .nhead = 12 };
	struct gate_rule r = { .unit = GATE_RELATIVE, .min_effect = 0.02 };
	double base[12], head[12];
	struct gate_result o;
	struct gate_design d;

	(void)state;
	assert_int_equal(gate_design_init(&d, &l, NULL), 0);
	for (unsigned int i = 0; i < 12; i++) {
		base[i] = (i % 2 ? 130 : 100) + wobble(i);
		head[i] = (i % 2 ? 130 : 100) + wobble(50 + i);
	}
	assert_int_equal(gate_compare(&d, &r, base, head, &o, NULL), 0);
	assert_true(o.flags & GATE_MULTIMODAL);
	/* The mean of two groups is noise. */
	assert_int_equal(o.verdict, GATE_INCONCLUSIVE);
	/* A change between one-group sides is no pair of groups. */
	for (unsigned int i = 0; i < 12; i++) {
		base[i] = 100 + wobble(i) + wobble(70 + i);
		head[i] = 130 + wobble(50 + i) + wobble(90 + i);
	}
	assert_int_equal(gate_compare(&d, &r, base, head, &o, NULL), 0);
	assert_false(o.flags & GATE_MULTIMODAL);
	assert_int_equal(o.verdict, GATE_FAIL);
	gate_design_deinit(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_changes),	   cmocka_unit_test(test_changes_refused),
		cmocka_unit_test(test_dip),	   cmocka_unit_test(test_modes),
		cmocka_unit_test(test_gate_modes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

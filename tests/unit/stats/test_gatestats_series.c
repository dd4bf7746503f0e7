/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Of the gate: the sequential test, change points, modes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profile/stats/change.h"
#include "profile/stats/modes.h"
#include "profile/stats/sequential.h"

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

/* -- sequential --------------------------------------------------------------------------------- */

static enum gate_seq_decision run_pairs(const struct gate_seq_options *opt, double effect,
					double noise, unsigned int *pairs, struct gate_result *out)
{
	enum gate_seq_decision d = GATE_SEQ_CONTINUE;
	struct gate_seq s;
	struct err e = { 0 };

	if (gate_seq_init(&s, opt, &e) < 0)
		fail_msg("%s", e.text);
	for (unsigned int i = 0; d == GATE_SEQ_CONTINUE; i++) {
		bool look = gate_seq_at_look(&s);

		assert_true(s.pairs == i && i < GATE_MAX_RUNS);
		if (gate_seq_add(&s, 100 + noise * wobble(2 * i),
				 100 + effect + noise * wobble(2 * i + 1), &d, &e) < 0)
			fail_msg("%s", e.text);
		assert_true(look || d == GATE_SEQ_CONTINUE);
	}
	assert_true(s.spent_fail <= s.opt.rule.alpha + 1e-12);
	assert_true(s.spent_pass <= s.opt.rule.miss + 1e-12);
	*pairs = s.pairs;
	/* Nothing can be added to what has ended. */
	assert_int_equal(gate_seq_add(&s, 1, 1, &d, &e), -EINVAL);
	assert_int_equal(gate_seq_result(&s, out, NULL), 0);
	gate_seq_deinit(&s);
	return d;
}

static void test_sequential(void **state)
{
	struct gate_seq_options o = { .rule = { .unit = GATE_RELATIVE, .min_effect = 0.02 },
				      .max_pairs = 20,
				      .resamples = 1999 };
	unsigned int pairs, again;
	struct gate_result r;

	(void)state;
	assert_int_equal(run_pairs(&o, 0, 1, &pairs, &r), GATE_SEQ_PASS);
	assert_int_equal(pairs, 8);
	assert_int_equal(r.verdict, GATE_PASS);
	assert_int_equal(run_pairs(&o, 5, 1, &pairs, &r), GATE_SEQ_FAIL);
	assert_true(pairs <= 12);
	assert_int_equal(r.verdict, GATE_FAIL);
	assert_true(r.effect > 0.04 && r.effect < 0.06);
	/* Better is a pass, unless that is what is looked for. */
	assert_int_equal(run_pairs(&o, -5, 1, &pairs, &r), GATE_SEQ_PASS);
	o.rule.worse = GATE_LOWER;
	assert_int_equal(run_pairs(&o, -5, 1, &pairs, &r), GATE_SEQ_FAIL);
	o.rule.worse = GATE_EITHER;
	assert_int_equal(run_pairs(&o, -5, 1, &pairs, &r), GATE_SEQ_FAIL);
	assert_int_equal(run_pairs(&o, 5, 1, &pairs, &r), GATE_SEQ_FAIL);
	assert_int_equal(run_pairs(&o, 0, 1, &pairs, &r), GATE_SEQ_PASS);
	/* All equal is as good as it gets. */
	assert_int_equal(run_pairs(&o, 0, 0, &pairs, &r), GATE_SEQ_PASS);
	/* Far too much noise: it ends without an answer, and the same each time. */
	o.rule.worse = GATE_HIGHER;
	o.futile = -1;
	assert_int_equal(run_pairs(&o, 2, 60, &pairs, &r), GATE_SEQ_INCONCLUSIVE);
	assert_int_equal(pairs, 20);
	assert_int_equal(r.verdict, GATE_INCONCLUSIVE);
	assert_int_equal(run_pairs(&o, 2, 60, &again, &r), GATE_SEQ_INCONCLUSIVE);
	assert_int_equal(again, pairs);
	/* Hopeless is seen before the end. */
	o.futile = 0.45;
	assert_int_equal(run_pairs(&o, 2, 60, &pairs, &r), GATE_SEQ_INCONCLUSIVE);
	assert_true(pairs < 20);
	/* A strict rule wants more than the minimum to be certain. */
	o = (struct gate_seq_options){ .rule = { .min_effect = 5, .strict = true },
				       .max_pairs = 20 };
	assert_int_not_equal(run_pairs(&o, 5.01, 1, &pairs, &r), GATE_SEQ_FAIL);
	assert_int_equal(run_pairs(&o, 7, 1, &pairs, &r), GATE_SEQ_FAIL);
	assert_string_equal(gate_seq_decision_text(GATE_SEQ_CONTINUE), "continue");
}

static void refuse(const struct gate_seq_options *o)
{
	struct gate_seq s;
	struct err e = { 0 };

	assert_int_equal(gate_seq_init(&s, o, &e), -EINVAL);
	assert_true(e.text[0]);
}

static void test_sequential_refused(void **state)
{
	struct gate_seq_options good = { .rule = { .unit = GATE_RELATIVE, .min_effect = 0.02 },
					 .max_pairs = 10 },
				o;
	enum gate_seq_decision d = GATE_SEQ_FAIL;
	struct gate_result r;
	struct gate_seq s;

	(void)state;
	o = good;
	o.max_pairs = 1;
	refuse(&o);
	o.max_pairs = GATE_MAX_RUNS + 1;
	refuse(&o);
	o = good;
	o.nlooks = 2;
	o.look[0] = o.look[1] = 5;
	refuse(&o);
	o.nlooks = GATE_SEQ_LOOKS + 1;
	refuse(&o);
	o = good;
	o.resamples = 50;
	refuse(&o);
	o = good;
	o.futile = NAN;
	refuse(&o);
	o = good;
	o.rule.min_effect = 0;
	refuse(&o);
	o = good;
	o.rule.location = GATE_QUANTILE;
	refuse(&o);
	assert_int_equal(gate_seq_init(&s, &good, NULL), 0);
	assert_int_equal(s.opt.nlooks, 4);
	assert_int_equal(s.opt.look[0], 4);
	assert_int_equal(s.opt.look[3], 10);
	assert_int_equal(gate_seq_add(&s, NAN, 1, &d, NULL), -EINVAL);
	assert_int_equal(gate_seq_add(&s, 1, INFINITY, &d, NULL), -EINVAL);
	assert_int_equal(gate_seq_add(&s, 1, -1, &d, NULL), -EINVAL);
	assert_int_equal(d, GATE_SEQ_FAIL);
	assert_int_equal(s.pairs, 0);
	assert_int_equal(gate_seq_result(&s, &r, NULL), -EINVAL);
	gate_seq_deinit(&s);
	gate_seq_deinit(&s);
	/* Few pairs have few looks. */
	for (unsigned int n = 2; n < 12; n++) {
		gate_seq_looks(&o, n);
		assert_true(o.nlooks && o.look[o.nlooks - 1] == n && o.look[0] >= 2);
		for (unsigned int k = 1; k < o.nlooks; k++)
			assert_true(o.look[k] > o.look[k - 1]);
	}
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

static void test_modes(void **state)
{
	double v[40], share[40], limit = 0;
	struct gate_modes m;
	bool seen;

	(void)state;
	for (unsigned int i = 0; i < 40; i++)
		v[i] = (i % 5 < 2 ? 130 : 100) + 4 * wobble(i);
	assert_int_equal(gate_modes_find(v, 40, &m, NULL), 0);
	assert_true(m.multimodal && m.p <= 0.01);
	assert_int_equal(m.nlow, 24);
	assert_int_equal(m.nhigh, 16);
	assert_true(m.cut > 105 && m.cut < 125 && fabs(m.low - 100) < 1 && fabs(m.high - 130) < 1);
	gate_mode_shares(v, 40, m.cut, share);
	for (unsigned int i = 0; i < 40; i++)
		near(share[i], i % 5 < 2);
	assert_int_equal(gate_modes_seen(v, 40, &limit, &seen), 0);
	assert_true(seen && limit > 0 && limit < m.dip);
	/* One group; ticks of a clock; all equal; too few to say. */
	for (unsigned int i = 0; i < 40; i++)
		v[i] = 100 + wobble(i) + wobble(i + 100) + wobble(i + 200);
	assert_int_equal(gate_modes_find(v, 40, &m, NULL), 0);
	assert_false(m.multimodal);
	for (unsigned int i = 0; i < 40; i++)
		v[i] = rint(v[i] * 3);
	assert_int_equal(gate_modes_find(v, 40, &m, NULL), 0);
	assert_false(m.multimodal);
	for (unsigned int i = 0; i < 40; i++)
		v[i] = 5;
	assert_int_equal(gate_modes_find(v, 40, &m, NULL), 0);
	assert_false(m.multimodal);
	assert_int_equal(m.nlow, 40);
	assert_int_equal(gate_modes_find((double[]){ 0, 0.1, 9, 9.1 }, 4, &m, NULL), 0);
	assert_false(m.multimodal);
	near(m.p, 1);
	near(m.cut, 4.55);
	v[7] = NAN;
	assert_int_equal(gate_modes_find(v, 40, &m, NULL), -EINVAL);
	assert_int_equal(gate_modes_find(v, 0, &m, NULL), -EINVAL);
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
		cmocka_unit_test(test_sequential), cmocka_unit_test(test_sequential_refused),
		cmocka_unit_test(test_changes),	   cmocka_unit_test(test_changes_refused),
		cmocka_unit_test(test_dip),	   cmocka_unit_test(test_modes),
		cmocka_unit_test(test_gate_modes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

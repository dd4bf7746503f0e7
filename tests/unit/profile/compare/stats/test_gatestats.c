/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The gate's test and verdict, against values worked out by hand and by trying all deals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profile/compare/stats/verdict.h"

#include "profile/compare/stats/order.h"
#include "profile/compare/stats/permute.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void near(double got, double want)
{
	if (!(fabs(got - want) <= 1e-9 * (1 + fabs(want))))
		fail_msg("%.12g instead of %.12g", got, want);
}

/* order: "ABBA" and so on, or NULL. */
static int make_design(struct stats_design *d, unsigned int nbase, unsigned int nhead,
		       const char *order, enum stats_pairing pairing, struct err *e)
{
	uint64_t base_at[STATS_MAX_RUNS], head_at[STATS_MAX_RUNS];
	struct stats_layout l = { .nbase = nbase, .nhead = nhead, .pairing = pairing };
	unsigned int a = 0, b = 0;

	for (unsigned int i = 0; order && order[i]; i++) {
		if (order[i] == 'A')
			base_at[a++] = 1000 + 7 * i;
		else
			head_at[b++] = 1000 + 7 * i;
	}
	if (order) {
		assert_true(a == nbase && b == nhead);
		l.base_at = base_at;
		l.head_at = head_at;
	}
	return stats_design_init(d, &l, e);
}

static struct stats_result compare(const struct stats_rule *r, unsigned int nbase,
				   const double *base, unsigned int nhead, const double *head,
				   const char *order)
{
	struct stats_result o = { 0 };
	struct err e = { 0 };
	struct stats_design d;

	if (make_design(&d, nbase, nhead, order, STATS_AUTO, &e) < 0 ||
	    stats_compare(&d, r, base, head, &o, &e) < 0)
		fail_msg("%s", e.text);
	stats_design_deinit(&d);
	return o;
}

static const struct stats_rule by_one = { .unit = STATS_ABSOLUTE, .min_effect = 1 };

/* -- p, effects, verdicts ---------------------------------------------------------------------- */

static void test_fail(void **state)
{
	const double base[] = { 1, 2, 3, 4, 5 }, head[] = { 6, 7, 8, 9, 10 };
	struct stats_rule r = by_one;
	struct stats_result o = compare(&r, 5, base, 5, head, NULL);

	(void)state;
	assert_int_equal(o.verdict, STATS_FAIL);
	assert_int_equal(o.reason, STATS_WORSE);
	near(o.base, 3);
	near(o.head, 8);
	near(o.effect, 5);
	near(o.relative, 5 / 3.0);
	near(o.p_fail, 1 / 252.0);
	near(o.p_two, 2 / 252.0);
	near(o.p_least, 1 / 252.0);
	near(o.q, o.p_fail);
	near(o.cliff, 1);
	near(o.hodges_lehmann, 5);
	assert_true(o.lo < 5 && o.hi > 5 && o.lo > 1 && o.hi < 9);
	/* The interval excludes 3.9 to 0 only if asked with more or less confidence. */
	r.confidence = 0.5;
	assert_true(compare(&r, 5, base, 5, head, NULL).lo > o.lo);
	r.confidence = -1;
	assert_true(isnan(compare(&r, 5, base, 5, head, NULL).lo));

	/* Strictly more than 1 still: 5..9 against 1..5, with one tie: sums of 35 or more. */
	r = by_one;
	r.strict = true;
	o = compare(&r, 5, base, 5, head, NULL);
	near(o.p_fail, 2 / 252.0);
	assert_int_equal(o.verdict, STATS_FAIL);
	/* But not than 3. */
	r.min_effect = 3;
	assert_int_equal(compare(&r, 5, base, 5, head, NULL).verdict, STATS_INCONCLUSIVE);

	/* Better is no fail, and excludes worse. */
	r = by_one;
	o = compare(&r, 5, head, 5, base, NULL);
	assert_int_equal(o.verdict, STATS_PASS);
	assert_int_equal(o.reason, STATS_EXCLUDED);
	assert_true(o.flags & STATS_IMPROVED);
	near(o.p_fail, 1);
	r.worse = STATS_LOWER;
	o = compare(&r, 5, head, 5, base, NULL);
	assert_int_equal(o.verdict, STATS_FAIL);
	near(o.p_fail, 1 / 252.0);
	near(o.effect, -5);
	r.worse = STATS_EITHER;
	o = compare(&r, 5, head, 5, base, NULL);
	assert_int_equal(o.verdict, STATS_FAIL);
	near(o.p_fail, 2 / 252.0);
	near(o.p_least, 2 / 252.0);
}

static void test_pass(void **state)
{
	const double v[] = { 1, 2, 3, 4, 5 }, w[] = { 2.5, 3.5, 4.5, 5.5, 6.5 };
	struct stats_rule r = { .unit = STATS_ABSOLUTE, .min_effect = 5 };
	struct stats_result o = compare(&r, 5, v, 5, v, NULL);

	(void)state;
	/* Moved back by 5, all of head lie below all of base. */
	assert_int_equal(o.verdict, STATS_PASS);
	near(o.p_pass, 1 / 252.0);
	near(o.effect, 0);
	near(o.cliff, 0);
	/* 1 cannot be excluded. */
	r.min_effect = 1;
	o = compare(&r, 5, v, 5, v, NULL);
	assert_int_equal(o.verdict, STATS_INCONCLUSIVE);
	assert_int_equal(o.reason, STATS_NOISE);
	/* Both ways: as hard on either side. */
	r = (struct stats_rule){ .worse = STATS_EITHER, .min_effect = 5 };
	o = compare(&r, 5, v, 5, w, NULL);
	assert_int_equal(o.verdict, STATS_PASS);
	/* -2.5 to 1.5 against 1 to 5: 1 instead of 1.5 is as low. */
	near(o.p_pass, 2 / 252.0);
	near(o.effect, 1.5);
	near(o.hodges_lehmann, 1.5);
}

static void test_units(void **state)
{
	double base[7], head[7];
	struct stats_rule r = { .unit = STATS_RELATIVE, .min_effect = 0.02 };
	struct stats_result o;

	(void)state;
	for (unsigned int i = 0; i < 7; i++) {
		base[i] = 100 + 0.1 * i;
		head[i] = base[i] * 1.05;
	}
	o = compare(&r, 7, base, 7, head, NULL);
	assert_int_equal(o.verdict, STATS_FAIL);
	near(o.effect, 0.05);
	assert_true(o.lo > 0.045 && o.lo < 0.05 && o.hi > 0.05 && o.hi < 0.055);
	/* Scaled back by just what it is, nothing is left: p is near a half, ties included. */
	r.strict = true;
	r.min_effect = 0.05;
	o = compare(&r, 7, base, 7, head, NULL);
	assert_true(o.p_fail > 0.5 && o.p_fail < 0.56);
	/* A tenth of a point more. */
	for (unsigned int i = 0; i < 7; i++) {
		base[i] = 0.0013 + 1e-5 * i;
		head[i] = 0.0033 + 1e-5 * i;
	}
	r = (struct stats_rule){ .unit = STATS_POINTS, .min_effect = 0.1 };
	o = compare(&r, 7, base, 7, head, NULL);
	assert_int_equal(o.verdict, STATS_FAIL);
	near(o.effect, 0.2);
	near(o.diff, 0.002);
	assert_true(o.lo > 0.19 && o.hi < 0.21);
	r.min_effect = 0.201;
	o = compare(&r, 7, base, 7, head, NULL);
	assert_int_equal(o.verdict, STATS_INCONCLUSIVE);
	assert_int_equal(o.reason, STATS_SMALL);
	r.min_effect = 0.25;
	o = compare(&r, 7, base, 7, head, NULL);
	assert_int_equal(o.verdict, STATS_PASS);
	assert_true(o.flags & STATS_CHANGED);
}

static void test_few_runs(void **state)
{
	const double lo[] = { 1, 2, 3, 4 }, hi[] = { 11, 12, 13, 14 };
	struct stats_result o = compare(&by_one, 4, lo, 4, hi, NULL);

	(void)state;
	/* 1 of 70 is more than 1 %. */
	near(o.p_fail, 1 / 70.0);
	assert_int_equal(o.verdict, STATS_INCONCLUSIVE);
	assert_int_equal(o.reason, STATS_TOO_FEW);
	o = compare(&by_one, 1, lo, 1, hi, NULL);
	assert_int_equal(o.verdict, STATS_INCONCLUSIVE);
	assert_int_equal(o.reason, STATS_TOO_FEW);
	near(o.effect, 10);
	near(o.p_fail, 1);
	assert_true(isnan(o.lo) && isnan(o.hi));
	o = compare(&by_one, 1, lo, 4, hi, NULL);
	assert_int_equal(o.reason, STATS_TOO_FEW);
	o = compare(&by_one, 2, lo, 2, hi, "ABAB");
	assert_int_equal(o.reason, STATS_TOO_FEW);
}

static void test_shift_sizes(void **state)
{
	struct stats_result o =
		compare(&by_one, 3, (double[]){ 3, 1, 2 }, 3, (double[]){ 4, 2, 3 }, NULL);

	(void)state;
	/* Six of nine differences are positive and one is negative; the median is 1. */
	near(o.cliff, 5 / 9.0);
	near(o.hodges_lehmann, 1);
	/* 1, 1, 4, 4. */
	o = compare(&by_one, 2, (double[]){ 0, 0 }, 2, (double[]){ 4, 1 }, NULL);
	near(o.hodges_lehmann, 2.5);
	near(o.cliff, 1);
}

/* -- all deals, tried in another way ------------------------------------------------------------ */

static double mean_of(const double *v, unsigned int n)
{
	double t = 0;

	for (unsigned int i = 0; i < n; i++)
		t += v[i];
	return t / n;
}

static double statistic(double *x, unsigned int na, double *y, unsigned int nb, double quantile)
{
	if (quantile >= 0) {
		qsort(x, na, sizeof(*x), stats_compare_doubles);
		qsort(y, nb, sizeof(*y), stats_compare_doubles);
		return stats_quantile_sorted(y, nb, quantile) -
		       stats_quantile_sorted(x, na, quantile);
	}
	return (mean_of(y, nb) - mean_of(x, na)) /
	       (na == nb ? 1 : sqrt(stats_variance(x, na) / na + stats_variance(y, nb) / nb));
}

static void all_deals(const double *v, unsigned int na, unsigned int nb, double quantile,
		      struct stats_p *out)
{
	double seen = 0, n = 0, up = 0, down = 0, two = 0;

	/* From the mask of what was seen on, then round. */
	for (unsigned int k = 0; k < 1u << (na + nb); k++) {
		unsigned int mask = ((1u << na) - 1 + k) & ((1u << (na + nb)) - 1), a = 0, b = 0;
		double x[16], y[16], t;

		if (__builtin_popcount(mask) != (int)na)
			continue;
		for (unsigned int i = 0; i < na + nb; i++) {
			if (mask >> i & 1)
				x[a++] = v[i];
			else
				y[b++] = v[i];
		}
		t = statistic(x, na, y, nb, quantile);
		seen = n ? seen : t;
		n++;
		up += t >= seen - 1e-9;
		down += t <= seen + 1e-9;
		two += fabs(t) >= fabs(seen) - 1e-9;
	}
	*out = (struct stats_p){ up / n, down / n, two / n };
}

static void test_exact(void **state)
{
	static const double quantiles[] = { -1, 0.5, 0, 0.9 };
	uint64_t random = 99;

	(void)state;
	for (unsigned int k = 0; k < 60; k++) {
		unsigned int na = 2 + k % 4, nb = 2 + k / 4 % 5;
		double q = quantiles[k % 3 + (k % 3 == 2)], v[16];
		struct stats_p want, got;
		struct stats_design d;

		/* Some with many ties. */
		for (unsigned int i = 0; i < na + nb; i++)
			v[i] = 1e6 + stats_pick(&random, k % 2 ? 1000 : 4);
		assert_int_equal(make_design(&d, na, nb, NULL, STATS_AUTO, NULL), 0);
		stats_permute(&d, v, q < 0 ? STATS_MEAN : STATS_QUANTILE, q, &got);
		stats_design_deinit(&d);
		if (q < 0 && na != nb && k % 2 == 0)
			continue; /* no spread in some deals: what t is then, is told elsewhere */
		all_deals(v, na, nb, q, &want);
		near(got.up, want.up);
		near(got.down, want.down);
		near(got.two, want.two);
	}
}

/* A median is not moved by what moves a mean. */
static void test_quantile(void **state)
{
	const double base[] = { 10, 11, 12, 13, 14, 15 }, head[] = { 20, 21, 22, 23, 24, 900 };
	struct stats_rule r = { .min_effect = 5, .location = STATS_QUANTILE, .quantile = 0.5 };
	struct stats_result o = compare(&r, 6, base, 6, head, NULL);

	(void)state;
	near(o.base, 12.5);
	near(o.head, 22.5);
	near(o.effect, 10);
	assert_int_equal(o.verdict, STATS_FAIL);
	assert_true(o.lo >= 6 && o.hi < 900);
	near(stats_quantile_sorted(base, 6, 0), 10);
	near(stats_quantile_sorted(base, 6, 1), 15);
	near(stats_quantile_sorted(base, 6, 0.9), 14.5);
	near(stats_quantile_sorted(base, 1, 0.9), 10);
	/* One run pulls the mean up and leaves the median lower: said, when it counts. */
	r = (struct stats_rule){ .min_effect = 1, .alpha = 0.5 };
	o = compare(&r, 6, (double[]){ 10, 11, 12, 13, 14, 15 }, 6,
		    (double[]){ 8, 9, 9, 9, 9, 900 }, NULL);
	assert_true(o.p_two > 0.01);
}

static void test_select(void **state)
{
	uint64_t random = 5;

	(void)state;
	for (unsigned int n = 1; n < 60; n++) {
		double v[60], sorted[60];
		size_t k = stats_pick(&random, n);

		for (unsigned int i = 0; i < n; i++)
			sorted[i] = v[i] = stats_pick(&random, n % 2 ? 5 : 500);
		qsort(sorted, n, sizeof(*sorted), stats_compare_doubles);
		near(stats_select(v, n, k), sorted[k]);
		for (size_t i = 0; i < k; i++)
			assert_true(v[i] <= v[k]);
	}
}

/* -- the order of running ------------------------------------------------------------------------ */

static void check_design(const char *order, unsigned int nblocks, bool pairs, bool confounded,
			 bool one_order)
{
	unsigned int a = 0, b = 0;
	struct stats_design d;

	for (unsigned int i = 0; order[i]; i++) {
		a += order[i] == 'A';
		b += order[i] == 'B';
	}
	assert_int_equal(make_design(&d, a, b, order, STATS_AUTO, NULL), 0);
	if (d.nblocks != nblocks || d.pairs != pairs || d.confounded != confounded ||
	    d.one_order != one_order)
		fail_msg("%s: %u blocks, pairs %d, confounded %d, one order %d", order, d.nblocks,
			 d.pairs, d.confounded, d.one_order);
	stats_design_deinit(&d);
}

static void test_design(void **state)
{
	struct stats_design d;
	uint64_t same[] = { 1, 2, 2 };
	struct stats_layout l = { .nbase = 3, .nhead = 3, .base_at = same, .head_at = same };
	struct err e = { 0 };

	(void)state;
	/* 2^7 deals reach 1 %, 2^6 do not: two blocks of 4 + 8 or so. */
	check_design("ABABABABABABAB", 7, true, false, true);
	check_design("ABBABAABABABBA", 7, true, false, false);
	check_design("BABABABABABABA", 7, true, false, true);
	check_design("ABABABABABAB", 3, false, false, true);
	check_design("ABABABABAB", 2, false, false, true);
	check_design("ABABABABABABABB", 7, false, false, false);
	/* No turns, or one only. */
	check_design("AAAAABBBBB", 1, false, true, false);
	check_design("BBBBBAAAAABBBB", 1, false, true, false);
	check_design("AAABBBAAABBBAAABBB", 5, false, false, false);
	assert_int_equal(stats_design_init(&d, &l, &e), -EINVAL);
	assert_non_null(strstr(e.text, "place 1"));
	l = (struct stats_layout){ .nbase = 0, .nhead = 3 };
	assert_int_equal(stats_design_init(&d, &l, NULL), -EINVAL);
	l = (struct stats_layout){ .nbase = 3, .nhead = STATS_MAX_RUNS + 1 };
	assert_int_equal(stats_design_init(&d, &l, NULL), -EINVAL);
	l = (struct stats_layout){ .nbase = 3, .nhead = 3, .alpha = NAN };
	assert_int_equal(stats_design_init(&d, &l, NULL), -EINVAL);
}

/* Does the order of eight runs a side show a drift? */
static bool drifts(const double *base, const double *head, const char *order)
{
	struct stats_design d;
	struct stats_order_seen seen;

	assert_int_equal(make_design(&d, 8, 8, order, STATS_AUTO, NULL), 0);
	seen = stats_order_seen(&d, base, head);
	stats_design_deinit(&d);
	return seen.drift;
}

/* A drift that is far larger than the change: pairs see the change, free deals do not. */
static void test_drift(void **state)
{
	double base[8], head[8];
	struct stats_result o;

	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		base[i] = 100 + 50 * i + (i % 3);
		head[i] = base[i] + 5 + (i % 2);
	}
	o = compare(&by_one, 8, base, 8, head, "ABBABAABABABBAAB");
	near(o.p_fail, 1 / 256.0);
	assert_int_equal(o.verdict, STATS_FAIL);
	assert_true(drifts(base, head, "ABBABAABABABBAAB"));
	assert_true(o.lo > 4.5 && o.hi < 6.5);
	o = compare(&by_one, 8, base, 8, head, NULL);
	assert_true(o.p_fail > 0.3);
	assert_false(drifts(base, head, NULL));
	/* All of base before all of head: a drift is no change, and none is excluded. */
	o = compare(&by_one, 8, base, 8, (double[]){ 501, 551, 602, 651, 700, 752, 800, 851 },
		    "AAAAAAAABBBBBBBB");
	assert_int_equal(o.verdict, STATS_INCONCLUSIVE);
	assert_int_equal(o.reason, STATS_DRIFTING);
	assert_true(o.flags & STATS_CONFOUNDED);
	assert_true(o.p_fail < 0.01);
	/* Base always first, 2 more with each run, and nothing else: said to be drift. */
	for (unsigned int i = 0; i < 8; i++) {
		base[i] = 100 + 4 * i + 0.01 * (i % 3);
		head[i] = 102 + 4 * i + 0.01 * (i % 2);
	}
	o = compare(&by_one, 8, base, 8, head, "ABABABABABABABAB");
	assert_true(o.p_fail < 0.01 && o.effect > 1.9);
	assert_int_equal(o.verdict, STATS_INCONCLUSIVE);
	assert_int_equal(o.reason, STATS_DRIFTING);
	/* With 5 more in head it is not drift alone. */
	for (unsigned int i = 0; i < 8; i++)
		head[i] += 5;
	assert_int_equal(compare(&by_one, 8, base, 8, head, "ABABABABABABABAB").verdict,
			 STATS_FAIL);
}

static void test_coin(void **state)
{
	bool first[STATS_MAX_RUNS], again[STATS_MAX_RUNS];
	unsigned int heads = 0;

	(void)state;
	stats_order(STATS_MAX_RUNS, 7, first);
	stats_order(STATS_MAX_RUNS, 7, again);
	assert_memory_equal(first, again, sizeof(first));
	for (unsigned int i = 0; i < STATS_MAX_RUNS; i++)
		heads += first[i];
	assert_true(heads > STATS_MAX_RUNS / 2 - 40 && heads < STATS_MAX_RUNS / 2 + 40);
}

/* -- what must be refused, or borne ----------------------------------------------------------- */

static void check_refused(const struct stats_rule *r, const double *base, const double *head)
{
	struct stats_result o = { .q = 42 };
	struct stats_design d;
	struct err e = { 0 };

	assert_int_equal(make_design(&d, 5, 5, NULL, STATS_AUTO, NULL), 0);
	assert_int_equal(stats_compare(&d, r, base, head, &o, &e), -EINVAL);
	assert_true(e.text[0]);
	near(o.q, 42);
	stats_design_deinit(&d);
}

static void test_refused(void **state)
{
	const double v[] = { 1, 2, 3, 4, 5 };
	const struct stats_rule bad[] = {
		{ .min_effect = 0 },
		{ .min_effect = -1 },
		{ .min_effect = NAN },
		{ .min_effect = INFINITY },
		{ .min_effect = 1, .alpha = -0.01 },
		{ .min_effect = 1, .alpha = 0.6 },
		{ .min_effect = 1, .alpha = NAN },
		{ .min_effect = 1, .miss = 0.7 },
		{ .min_effect = 1, .confidence = 95 },
		{ .min_effect = 1, .confidence = NAN },
		{ .min_effect = 1, .location = STATS_QUANTILE, .quantile = 1.1 },
		{ .min_effect = 1, .worse = STATS_LOWER, .unit = STATS_RELATIVE },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		check_refused(&bad[i], v, v);
	check_refused(&by_one, (double[]){ 1, 2, NAN, 4, 5 }, v);
	check_refused(&by_one, v, (double[]){ 1, 2, 3, 4, INFINITY });
	check_refused(&by_one, v, (double[]){ 1, 2, 3, 4, -1e200 });
}

static void test_degenerate(void **state)
{
	const double zero[] = { 0, 0, 0, 0, 0 }, one[] = { 1, 1, 1, 1, 1 };
	struct stats_rule relative = { .unit = STATS_RELATIVE, .min_effect = 0.02 }, r;
	double base[6], head[6];
	struct stats_result o;

	(void)state;
	/* All equal: no change of 1, for certain. */
	o = compare(&by_one, 5, one, 5, one, NULL);
	assert_int_equal(o.verdict, STATS_PASS);
	near(o.p_two, 1);
	near(o.lo, 0);
	near(o.hi, 0);
	/* Constant, but different. */
	o = compare(&by_one, 5, zero, 5, one, NULL);
	assert_int_equal(o.verdict, STATS_FAIL);
	near(o.effect, 1);
	near(o.lo, 1);
	near(o.hi, 1);
	/* With unequal sides Welch's t has no spread then. */
	o = compare(&by_one, 5, zero, 4, one, NULL);
	near(o.p_fail, 1 / 126.0);
	o = compare(&by_one, 5, one, 4, one, NULL);
	near(o.p_fail, 1);
	near(o.p_two, 1);
	/* Relative to nothing. */
	o = compare(&relative, 5, zero, 5, one, NULL);
	assert_int_equal(o.verdict, STATS_INCONCLUSIVE);
	assert_int_equal(o.reason, STATS_NO_BASE);
	assert_true(isnan(o.effect) && isnan(o.lo) && isnan(o.relative));
	near(o.diff, 1);
	assert_int_equal(compare(&relative, 5, one, 5, (double[]){ 1, 1, -1, 1, 1 }, NULL).reason,
			 STATS_NO_BASE);
	/* Nothing left is a change by 100 %. */
	r = relative;
	r.worse = STATS_LOWER;
	o = compare(&r, 5, one, 5, zero, NULL);
	assert_int_equal(o.verdict, STATS_FAIL);
	near(o.effect, -1);
	/* Rounding is no difference: sums in another order, and 0.1 + 0.2. */
	for (unsigned int i = 0; i < 6; i++) {
		base[i] = 0.3;
		head[i] = 0.1 + 0.2;
	}
	o = compare(&by_one, 6, base, 6, head, NULL);
	near(o.p_two, 1);
	/* Any size of values. */
	for (double scale = 1e-290; scale < 1e150; scale *= 1e40) {
		r = relative;
		for (unsigned int i = 0; i < 6; i++) {
			base[i] = scale * (1 + 0.001 * i);
			head[i] = scale * (1.05 + 0.001 * i);
		}
		o = compare(&r, 6, base, 6, head, NULL);
		near(o.p_fail, 1 / 924.0);
		assert_int_equal(o.verdict, STATS_FAIL);
		assert_true(o.lo > 0.04 && o.hi < 0.06);
	}
	/* A large level with a small change. */
	for (unsigned int i = 0; i < 6; i++) {
		base[i] = 1e9 + 0.1 * i;
		head[i] = 1e9 + 2 + 0.1 * i;
	}
	o = compare(&by_one, 6, base, 6, head, NULL);
	near(o.p_fail, 1 / 924.0);
	assert_int_equal(o.verdict, STATS_FAIL);
}

/* -- families ---------------------------------------------------------------------------------- */

static void test_adjust(void **state)
{
	struct stats_result r[4] = {
		{ .verdict = STATS_FAIL, .reason = STATS_WORSE, .p_fail = 0.002 },
		{ .verdict = STATS_PASS, .reason = STATS_EXCLUDED, .p_fail = 0.5 },
		{ .verdict = STATS_FAIL, .reason = STATS_WORSE, .p_fail = 0.004 },
		{ .verdict = STATS_FAIL, .reason = STATS_WORSE, .p_fail = 0.009 },
	};
	struct stats_result *all[4] = { &r[0], &r[1], &r[2], &r[3] };

	(void)state;
	/* Holm: 0.008, 0.012, 0.018, 0.5. */
	assert_int_equal(stats_adjust(all, 4, 0.01, STATS_HOLM), 0);
	near(r[0].q, 0.008);
	near(r[2].q, 0.012);
	near(r[3].q, 0.018);
	near(r[1].q, 0.5);
	assert_int_equal(r[0].verdict, STATS_FAIL);
	assert_int_equal(r[1].verdict, STATS_PASS);
	assert_int_equal(r[2].verdict, STATS_INCONCLUSIVE);
	assert_int_equal(r[2].reason, STATS_TOO_MANY);
	/* Benjamini and Hochberg: 0.008, 0.008, 0.012, 0.5. */
	r[2].verdict = r[3].verdict = STATS_FAIL;
	assert_int_equal(stats_adjust(all, 4, 0.01, STATS_FDR), 0);
	near(r[0].q, 0.008);
	near(r[2].q, 0.008);
	near(r[3].q, 0.012);
	assert_int_equal(r[2].verdict, STATS_FAIL);
	assert_int_equal(r[3].verdict, STATS_INCONCLUSIVE);
	assert_int_equal(stats_adjust(all, 0, 0.01, STATS_HOLM), 0);
	for (enum stats_reason k = 0; k < STATS_REASON_MAX; k++)
		assert_true(stats_reason_text(k)[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fail),	    cmocka_unit_test(test_pass),
		cmocka_unit_test(test_units),	    cmocka_unit_test(test_few_runs),
		cmocka_unit_test(test_shift_sizes), cmocka_unit_test(test_exact),
		cmocka_unit_test(test_quantile),    cmocka_unit_test(test_select),
		cmocka_unit_test(test_design),	    cmocka_unit_test(test_drift),
		cmocka_unit_test(test_coin),	    cmocka_unit_test(test_refused),
		cmocka_unit_test(test_degenerate),  cmocka_unit_test(test_adjust),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Deals, and the means of two groups of runs by them, against values worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profile/compare/stats/share.h"
#include "profile/compare/stats/verdict.h"

#include <errno.h>
#include <math.h>

static void near(double got, double want)
{
	if (!(fabs(got - want) <= 1e-9 * (1 + fabs(want))))
		fail_msg("%.12g instead of %.12g", got, want);
}

static struct stats_shift compare(unsigned int na, const double *a, unsigned int nb,
				  const double *b)
{
	const struct stats_layout l = { .nbase = na, .nhead = nb };
	struct stats_design d;
	struct stats_shift r;

	assert_int_equal(stats_design_init(&d, &l, NULL), 0);
	stats_compare_means(&d, a, b, &r);
	assert_true(!r.tested || r.p >= d.deals.p_least - 1e-12);
	stats_design_deinit(&d);
	return r;
}

static void test_exact(void **state)
{
	struct stats_shift r;

	(void)state;
	/* 2 of the 20 ways to divide six runs are as extreme as "all low, all high". */
	r = compare(3, (double[]){ 1, 2, 3 }, 3, (double[]){ 4, 5, 6 });
	assert_true(r.tested);
	near(r.base, 2);
	near(r.head, 5);
	near(r.diff, 3);
	near(r.p, 2 / 20.0);
	/* 2 of 6; the smallest there is. */
	near(compare(2, (double[]){ 1, 2 }, 2, (double[]){ 3, 4 }).p, 1 / 3.0);
	/* {1,4} and {2,3} have one mean: all six deals are at least as extreme. */
	near(compare(2, (double[]){ 1, 4 }, 2, (double[]){ 2, 3 }).p, 1);
	/* Sides of unequal size: Welch's t is 1.858 as seen, and at most 1.637 in the other nine. */
	r = compare(2, (double[]){ 1, 2 }, 3, (double[]){ 3, 4, 10 });
	near(r.diff, 17 / 3.0 - 1.5);
	near(r.p, 1 / 10.0);
	/* Nothing differs: nothing is unusual, and rounding makes no difference. */
	r = compare(3, (double[]){ 0.1, 0.1, 0.1 }, 3, (double[]){ 0.1, 0.1, 0.1 });
	near(r.p, 1);
	near(r.lo, 0);
	near(r.hi, 0);
	r = compare(3, (double[]){ 0.1, 0.2, 0.3 }, 3, (double[]){ 0.3, 0.2, 0.1 });
	near(r.p, 1);
}

static void test_one_run(void **state)
{
	const uint16_t block[STATS_MAX_RUNS + 2] = { 0 };
	const struct stats_blocks one = { .block = block, .nblocks = 1 };
	struct stats_shift r;
	struct stats_deals s;

	(void)state;
	r = compare(1, (double[]){ 1 }, 1, (double[]){ 4 });
	assert_false(r.tested);
	near(r.diff, 3);
	r = compare(1, (double[]){ 1 }, 3, (double[]){ 4, 5, 6 });
	assert_false(r.tested);
	near(r.diff, 4);
	assert_int_equal(stats_deals_init(&s, 0, 1, &one, 1, NULL), -EINVAL);
	assert_int_equal(stats_deals_init(&s, 1, STATS_MAX_RUNS + 1, &one, 1, NULL), -EINVAL);
}

static void test_deals(void **state)
{
	const uint16_t block[2 * STATS_MAX_RUNS] = { 0 };
	const struct stats_blocks one = { .block = block, .nblocks = 1 };
	struct stats_deals s;

	(void)state;
	/* 8 over 4 */
	assert_int_equal(stats_deals_init(&s, 4, 4, &one, 1, NULL), 0);
	assert_true(s.exact);
	assert_int_equal(s.ndeals, 70);
	near(s.p_least, 2 / 70.0);
	for (size_t k = 0; k < s.ndeals; k++) {
		unsigned int mask = 0;

		for (unsigned int i = 0; i < 4; i++)
			mask |= 1u << s.deal[4 * k + i];
		assert_int_equal(__builtin_popcount(mask), 4);
		assert_true(mask < 256);
		for (size_t j = 0; j < k; j++) {
			unsigned int other = 0;

			for (unsigned int i = 0; i < 4; i++)
				other |= 1u << s.deal[4 * j + i];
			assert_int_not_equal(mask, other);
		}
	}
	stats_deals_deinit(&s);
	assert_int_equal(stats_deals_init(&s, 8, 8, &one, 1, NULL), 0);
	assert_true(s.exact);
	assert_int_equal(s.ndeals, 12870);
	stats_deals_deinit(&s);
	assert_int_equal(stats_deals_init(&s, 9, 9, &one, 1, NULL), 0);
	assert_false(s.exact);
	assert_int_equal(s.ndeals, 10000);
	near(s.p_least, 1e-4);
	stats_deals_deinit(&s);
	assert_int_equal(stats_deals_init(&s, STATS_MAX_RUNS, STATS_MAX_RUNS, &one, 1, NULL), 0);
	stats_deals_deinit(&s);
}

/* By chance: the same seed gives the same; far apart is far apart; about half is about half. */
static void test_resampled(void **state)
{
	double a[12], b[12];
	struct stats_shift r, again;

	(void)state;
	for (unsigned int i = 0; i < 12; i++) {
		a[i] = i * 0.01;
		b[i] = 10 + i * 0.01;
	}
	r = compare(12, a, 12, b);
	again = compare(12, a, 12, b);
	near(r.p, 1e-4);
	assert_true(r.p == again.p && r.lo == again.lo && r.hi == again.hi);
	assert_true(r.lo < 10 && r.hi > 10 && r.lo > 9.9 && r.hi < 10.1);
	/* One odd value of 24: it is on either side half of the time, so all are as extreme. */
	for (unsigned int i = 0; i < 12; i++)
		a[i] = b[i] = 1;
	b[3] = 2;
	near(compare(12, a, 12, b).p, 1);
	/* Two: both on one side in 11/23 of all deals. */
	b[5] = 2;
	r = compare(12, a, 12, b);
	assert_true(fabs(r.p - 11 / 23.0) < 0.03);
}

static void test_interval(void **state)
{
	struct stats_shift r;

	(void)state;
	/* Draws of two runs often have no spread: the interval is Welch's, with t of 2 degrees. */
	r = compare(2, (double[]){ 0, 2 }, 2, (double[]){ 10, 12 });
	near(r.lo, 10 - 4.302652729911275 * sqrt(2));
	near(r.hi, 10 + 4.302652729911275 * sqrt(2));
	r = compare(2, (double[]){ 5, 5 }, 2, (double[]){ 7, 7 });
	near(r.lo, 2);
	near(r.hi, 2);
}

static void test_noise(void **state)
{
	(void)state;
	/* 1.96 times the root of 0.25/1000 + 0.25/1000. */
	near(share_noise(0.5, 1000, 0.5, 1000), 1.959963984540054 * sqrt(0.0005));
	near(share_noise(0, 1000, 1, 1000), 0);
	near(share_noise(0.5, 0, 0.5, 0), 0);
}

static void test_fdr(void **state)
{
	const double p[] = { 0.01, 0.04, 0.03, 0.005 };
	double q[6];

	(void)state;
	assert_int_equal(stats_fdr(p, 4, q), 0);
	near(q[0], 0.02);
	near(q[1], 0.04);
	near(q[2], 0.04);
	near(q[3], 0.02);
	/* In place; a later, smaller one pulls earlier ones down; never over 1. */
	q[0] = 0.9;
	q[1] = 1;
	q[2] = 0.2;
	q[3] = 0.2;
	q[4] = 0.21;
	assert_int_equal(stats_fdr(q, 5, q), 0);
	near(q[0], 1);
	near(q[1], 1);
	near(q[2], 0.35);
	near(q[3], 0.35);
	near(q[4], 0.35);
	assert_int_equal(stats_fdr(q, 0, q), 0);
}

static struct stats_shift compare_blocks(const struct stats_blocks *l, unsigned int na,
					 const double *a, unsigned int nb, const double *b,
					 size_t ndeals, double p_least)
{
	struct stats_design d = { .nbase = na, .nhead = nb, .block = (uint16_t *)l->block };
	struct stats_shift r;

	d.pairs = l->nblocks == na;
	assert_int_equal(stats_deals_init(&d.deals, na, nb, l, STATS_SEED, NULL), 0);
	assert_true(d.deals.exact);
	assert_int_equal(d.deals.ndeals, ndeals);
	near(d.deals.p_least, p_least);
	for (unsigned int i = 0; i < na; i++)
		assert_true(d.deals.deal[i] < na);
	stats_compare_means(&d, a, b, &r);
	stats_deals_deinit(&d.deals);
	return r;
}

static void test_blocks(void **state)
{
	const uint16_t pairs[] = { 0, 1, 2, 3, 0, 1, 2, 3 }, fours[] = { 0, 0, 1, 1, 0, 1, 1, 0 },
		       uneven[] = { 0, 0, 1, 0, 1, 1 }, bad[] = { 0, 1, 2, 4, 0, 1, 2, 3 };
	const double a[] = { 1, 2, 3, 4 }, b[] = { 2, 4, 6, 8 };
	struct stats_shift r, free_sides;
	struct stats_deals s;

	(void)state;
	/* Differences 1, 2, 3, 4: only all of one sign are as far from 0. */
	r = compare_blocks(&(struct stats_blocks){ .block = pairs, .nblocks = 4 }, 4, a, 4, b, 16,
			   2 / 16.0);
	near(r.p, 2 / 16.0);
	near(r.diff, 2.5);
	/* Pairs are drawn whole, so the interval is of the differences 1 to 4: narrower than of sides. */
	near(r.lo + r.hi, 5);
	assert_true(r.lo < 2 && r.hi > 3);
	free_sides = compare(4, a, 4, b);
	assert_true(free_sides.hi - free_sides.lo > r.hi - r.lo);
	/* {1, 2 | 2, 8} and {3, 4 | 4, 6}: sums of a pair of each, 6 ways each. */
	r = compare_blocks(&(struct stats_blocks){ .block = fours, .nblocks = 2 }, 4, a, 4, b, 36,
			   2 / 36.0);
	/* Seen 10 of 30. Sums 3 3 10 4 9 10 and 7 7 9 8 10 10: at most 10, or 20 and more. */
	near(r.p, (4 + 4) / 36.0);
	/* Two of three, and one of three. */
	compare_blocks(&(struct stats_blocks){ .block = uneven, .nblocks = 2 }, 3, a, 3, b, 9,
		       1 / 9.0);
	assert_int_equal(stats_deals_init(&s, 4, 4,
					  &(struct stats_blocks){ .block = bad, .nblocks = 4 }, 1,
					  NULL),
			 -EINVAL);
}

/* Too many to try: by chance, but never out of a block, with as many resamples as asked for. */
static void test_blocks_resampled(void **state)
{
	uint16_t block[40];
	struct stats_blocks l = { .block = block, .nblocks = 20, .resamples = 12345 };
	struct stats_deals s;
	size_t as_seen = 0;

	(void)state;
	for (unsigned int i = 0; i < 40; i++)
		block[i] = (uint16_t)(i % 20);
	assert_int_equal(stats_deals_init(&s, 20, 20, &l, 1, NULL), 0);
	assert_false(s.exact);
	assert_int_equal(s.ndeals, 12346);
	for (size_t k = 0; k < s.ndeals; k++) {
		for (unsigned int i = 0; i < 20; i++)
			assert_int_equal(s.deal[20 * k + i] % 20, i);
		as_seen += s.deal[20 * k] == 0;
	}
	assert_true(as_seen > 6173 - 300 && as_seen < 6173 + 300);
	for (size_t k = 0; k < STATS_RESAMPLES; k++) {
		for (unsigned int i = 0; i < 20; i++)
			assert_int_equal(s.draw[40 * k + i], s.draw[40 * k + 20 + i]);
	}
	stats_deals_deinit(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_one_run),
		cmocka_unit_test(test_deals),
		cmocka_unit_test(test_resampled),
		cmocka_unit_test(test_interval),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_fdr),
		cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_blocks_resampled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/stats/change.h"

#include "profile/compare/stats/permute.h"
#include "profile/compare/stats/power.h"

#include "base/cleanup.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Values are rounded to so many parts of the largest: noise of rounding must not tell them apart. */
#define DIGITS 1e13

/* Values of a segment, and shuffles of it with the order that was seen. */
#define SMALL 32u
#define SMALL_SHUFFLES 10000u
#define SMALLEST 16u
#define SMALLEST_SHUFFLES 100000u

/* Work on one series, with room for shuffles of it. */
struct change_search {
	struct stats_change_options o;
	const double *v;
	size_t n;
	double *shuffled, *unit;
	double *level; /* as unit, before dependence was taken out */
	double phi;
	bool is_level[STATS_CHANGES_MAX + 2]; /* for each of cut[]: whether it changes the level */
	uint64_t state;
	size_t cut[STATS_CHANGES_MAX + 2];		  /* 0, changes in order, n */
	struct stats_change found[STATS_CHANGES_MAX + 2]; /* found[i] belongs to cut[i] */
	size_t ncuts;
	double step; /* difference of two values that are 1 apart in unit[] */
};

struct change_split {
	size_t at; /* first of the right part; 0: none */
	double energy;
};

/*
 * The best split of n values into parts of at least `least`: the largest
 * m k / (m + k) (2 E|x-y| - E|x-x'| - E|y-y'|), m and k the parts' sizes. Moving one value from
 * the right to the left part changes the three sums by its distances to both: O(n^2).
 */
static struct change_split best_split(const double *x, size_t n, size_t least)
{
	double within_left = 0, within_right = 0, between = 0;
	struct change_split best = { 0 };

	for (size_t i = 0; i < n; i++) {
		for (size_t j = i + 1; j < n; j++)
			within_right += fabs(x[i] - x[j]);
	}
	for (size_t at = 1; at < n; at++) {
		double to_left = 0, to_right = 0, m = (double)at, k = (double)(n - at), q;

		for (size_t j = 0; j < at; j++)
			to_left += fabs(x[at - 1] - x[j]);
		for (size_t j = at; j < n; j++)
			to_right += fabs(x[at - 1] - x[j]);
		within_left += to_left;
		within_right -= to_right;
		between += to_right - to_left;
		if (at < least || n - at < least)
			continue;
		q = 2 * between / (m * k);
		q -= m > 1 ? 2 * within_left / (m * (m - 1)) : 0;
		q -= k > 1 ? 2 * within_right / (k * (k - 1)) : 0;
		q *= m * k / (m + k);
		if (!best.at || q > best.energy)
			best = (struct change_split){ at, q };
	}
	return best;
}

/*
 * p of a segment's best split: how often shuffling the segment gives one as large. Stops as soon as it cannot be
 * significant any more. Each segment is judged by itself: what is noisy does not hide a change where it is quiet.
 */
static double split_p(struct change_search *s, size_t from, size_t n, double energy)
{
	unsigned int as_large = 1, all = s->o.shuffles + 1;
	double *v = s->shuffled + from;

	/* Few values have few arrangements, and their least p is close to alpha: it has to be right. */
	if (n <= SMALL)
		all = n <= SMALLEST ? SMALLEST_SHUFFLES : SMALL_SHUFFLES;
	for (unsigned int k = 1; k < all; k++) {
		memcpy(v, s->unit + from, n * sizeof(*v));
		for (size_t i = n; i > 1; i--) {
			unsigned int j = stats_pick(&s->state, (unsigned int)i);
			double t = v[j];

			v[j] = v[i - 1];
			v[i - 1] = t;
		}
		as_large += best_split(v, n, STATS_CHANGE_SEGMENT).energy >= energy * (1 - 1e-9);
		if (as_large > s->o.alpha * all * (1 + 1e-9))
			return (double)as_large / (k + 1);
	}
	return (double)as_large / all;
}

static void insert_cut(struct change_search *s, size_t segment, const struct change_split *best,
		       double p)
{
	memmove(s->cut + segment + 2, s->cut + segment + 1,
		(s->ncuts - segment - 1) * sizeof(*s->cut));
	memmove(s->found + segment + 2, s->found + segment + 1,
		(s->ncuts - segment - 1) * sizeof(*s->found));
	s->cut[segment + 1] = best->at;
	s->found[segment + 1] =
		(struct stats_change){ .at = best->at, .p = p, .energy = best->energy * s->step };
	s->ncuts++;
}

static void split_all(struct change_search *s)
{
	size_t k = 0;

	/* Segments before k have no change; a split one is looked at again, from its left part on. */
	while (k + 1 < s->ncuts && s->ncuts < STATS_CHANGES_MAX + 2) {
		const size_t from = s->cut[k], n = s->cut[k + 1] - from;
		struct change_split best = { 0 };
		double p = 1;

		if (n >= 2 * STATS_CHANGE_SEGMENT)
			best = best_split(s->unit + from, n, STATS_CHANGE_SEGMENT);
		if (best.at && best.energy > 0)
			p = split_p(s, from, n, best.energy);
		if (p > s->o.alpha) {
			k++;
			continue;
		}
		best.at += from;
		insert_cut(s, k, &best, p);
	}
}

static void remove_cut(struct change_search *s, size_t k)
{
	memmove(s->cut + k, s->cut + k + 1, (s->ncuts - k - 1) * sizeof(*s->cut));
	memmove(s->found + k, s->found + k + 1, (s->ncuts - k - 1) * sizeof(*s->found));
	s->ncuts--;
}

/* -- levels ------------------------------------------------------------------------------------ */

#define SPREAD_RATIO 4.0 /* ratio of variances above which Welch's test is used */

/*
 * Returns the two-sided p of a difference of means by Student's t, or by Welch's where the smaller segment has far the
 * larger spread: then the pooled one would be too small.
 */
static double level_p(const double *x, size_t m, const double *y, size_t k)
{
	const double a = stats_mean(x, m), b = stats_mean(y, k), n = (double)m, l = (double)k;
	const double va = stats_variance(x, m), vb = stats_variance(y, k);
	double var = ((n - 1) * va + (l - 1) * vb) / (n + l - 2) * (1 / n + 1 / l), df = n + l - 2;

	if ((m <= k && va > SPREAD_RATIO * vb) || (k <= m && vb > SPREAD_RATIO * va)) {
		var = va / n + vb / l;
		df = var * var / (va * va / (n * n * (n - 1)) + vb * vb / (l * l * (l - 1)));
	}
	if (!(var > 0))
		return a == b ? 1 : 0;
	return 2 * (1 - stats_t_cdf(fabs(a - b) / sqrt(var), df));
}

/*
 * Whitens a segment into out: each value less what the one before says of it. The first one has none before it that is
 * of this level.
 */
static void whiten_segment(const struct change_search *s, size_t k, double *out)
{
	const double *x = s->level + s->cut[k];

	out[0] = x[0];
	for (size_t i = 1; i < s->cut[k + 1] - s->cut[k]; i++)
		out[i] = (x[i] - s->phi * x[i - 1]) / (1 - s->phi);
}

#define NEAR 10u /* values, by which dependence may have moved a change */

/* Returns the sum of squares that an AR(1) about two levels leaves in n values, the second of which begins at `at`. */
static double left_over(const struct change_search *s, const double *x, size_t n, size_t at)
{
	const double a = stats_mean(x, at), b = stats_mean(x + at, n - at);
	double sum = 0;

	for (size_t i = 1; i < n; i++) {
		double e = x[i] - (i < at ? a : b) - s->phi * (x[i - 1] - (i <= at ? a : b));

		sum += e * e;
	}
	return sum;
}

/* Returns whether the parts on both sides of `at` have about the same spread: least squares place no other change. */
static bool is_of_one_spread(const double *x, size_t n, size_t at)
{
	const double a = stats_variance(x, at), b = stats_variance(x + at, n - at);

	return a <= SPREAD_RATIO * b && b <= SPREAD_RATIO * a;
}

/* Moves each change of level to where the model of dependent values fits best. */
static void place_changes(struct change_search *s)
{
	for (size_t k = 1; k + 1 < s->ncuts; k++) {
		const size_t from = s->cut[k - 1], n = s->cut[k + 1] - from;
		const size_t at = s->cut[k] - from, least = STATS_CHANGE_SEGMENT;
		size_t first = at > NEAR + least ? at - NEAR : least;
		size_t last = at + NEAR + least < n ? at + NEAR : n - least, best = at;
		double most = left_over(s, s->level + from, n, at);

		if (!is_of_one_spread(s->level + from, n, at))
			continue;
		for (size_t i = first; i <= last; i++) {
			double sum = left_over(s, s->level + from, n, i);

			if (sum < most) {
				most = sum;
				best = i;
			}
		}
		s->cut[k] = s->found[k].at = from + best;
	}
}

/* Distinguishes changes of level from those of spread or shape only, each by the two segments that meet there. */
static void judge_levels(struct change_search *s)
{
	double *x = s->shuffled;

	for (size_t k = 1; k + 1 < s->ncuts; k++) {
		const size_t m = s->cut[k] - s->cut[k - 1], n = s->cut[k + 1] - s->cut[k];

		whiten_segment(s, k - 1, x);
		whiten_segment(s, k, x + m);
		s->is_level[k] = level_p(x, m, x + m, n) <= s->o.alpha;
	}
}

/* -- dependence -------------------------------------------------------------------------------- */

/*
 * The part of squares that is left out, the largest ones, which steps and outliers have: at least a tenth, of few values
 * as much as LEFT_OUT values, but not more than LEFT_OUT_MOST.
 */
#define LEFT_OUT_LEAST 0.1
#define LEFT_OUT_MOST 0.4
#define LEFT_OUT 5.0
#define DEPENDENCE_MOST 0.9
/* Few values tell little of it; more than this would hide each step in them. */
#define FEW 20u
#define DEPENDENCE_OF_FEW 0.5

/* Returns a mean square of the differences of values `lag` apart about their median, without the largest ones. */
static double differences(const double *v, size_t n, size_t lag, double *d)
{
	const double left_out = fmin(fmax(LEFT_OUT / (double)n, LEFT_OUT_LEAST), LEFT_OUT_MOST);
	const size_t m = n - lag, kept = (size_t)ceil((1 - left_out) * (double)m);
	double median, sum = 0;

	for (size_t i = 0; i < m; i++)
		d[i] = v[i + lag] - v[i];
	qsort(d, m, sizeof(*d), stats_compare_doubles);
	median = stats_quantile_sorted(d, (unsigned int)m, 0.5);
	for (size_t i = 0; i < m; i++)
		d[i] = (d[i] - median) * (d[i] - median);
	qsort(d, m, sizeof(*d), stats_compare_doubles);
	for (size_t i = 0; i < kept; i++)
		sum += d[i];
	return sum / (double)kept;
}

/*
 * Returns how much a value depends on the one before, as phi of an AR(1), 0 to DEPENDENCE_MOST. Differences have the
 * variances 2 s^2 (1 - phi^lag), so those of lag 2 are 1 + phi times those of lag 1; steps are in few differences, and a
 * straight drift is in their median.
 */
static double dependence(const double *v, size_t n, double *room)
{
	double one, two, phi, error;

	if (n < 2 * STATS_CHANGE_SEGMENT)
		return 0;
	one = differences(v, n, 1, room);
	two = differences(v, n, 2, room);
	if (!(one > 0))
		return 0;
	phi = fmin(two / one - 1, DEPENDENCE_MOST);
	error = sqrt((1 - phi * phi) / (double)n);
	/* The estimate is off by about `error`; a dependence that is there is not to be underestimated. */
	if (phi > error)
		phi += error;
	return fmin(fmax(phi, 0), n < FEW ? DEPENDENCE_OF_FEW : DEPENDENCE_MOST);
}

/*
 * Takes from each value what the one before says of it: levels stay, and what is left is independent. The first value
 * of a new level would be beyond it by phi / (1 - phi) of the step, so values stay within the range that they had.
 */
static void make_independent(double *v, size_t n, double phi)
{
	double least = HUGE_VAL, most = -HUGE_VAL;

	for (size_t i = 0; i < n; i++) {
		least = fmin(least, v[i]);
		most = fmax(most, v[i]);
	}
	for (size_t i = n; i-- > 1;)
		v[i] = fmin(fmax((v[i] - phi * v[i - 1]) / (1 - phi), least), most);
}

/* Fills in the means left and right of each cut, and removes the smallest step while it is below min_effect. */
static void drop_small(struct change_search *s)
{
	for (;;) {
		double least = HUGE_VAL;
		size_t which = 0;

		for (size_t k = 1; k + 1 < s->ncuts; k++) {
			struct stats_change *c = &s->found[k];
			double step;

			c->before = stats_mean(s->v + s->cut[k - 1], s->cut[k] - s->cut[k - 1]);
			c->after = stats_mean(s->v + s->cut[k], s->cut[k + 1] - s->cut[k]);
			step = c->before != 0 ? fabs(c->after - c->before) / fabs(c->before)
					      : HUGE_VAL;
			if (step < least) {
				least = step;
				which = k;
			}
		}
		if (!which || !(least < s->o.min_effect))
			return;
		remove_cut(s, which);
	}
}

static int change_check(const struct change_search *s, struct err *e)
{
	const struct stats_change_options *o = &s->o;

	if (s->n > STATS_HISTORY_MAX)
		return err_set(e, EINVAL,
			       "a history of %zu values: at most %u, leave the oldest out", s->n,
			       STATS_HISTORY_MAX);
	for (size_t i = 0; i < s->n; i++) {
		if (!(fabs(s->v[i]) <= 1e150))
			return err_set(e, EINVAL,
				       "value %zu of the history is %g: not a usable number", i + 1,
				       s->v[i]);
	}
	if (!(o->alpha > 0 && o->alpha <= 0.5) || o->shuffles < 99 || o->shuffles > 9999 ||
	    !(o->min_effect >= 0))
		return err_set(
			e, EINVAL,
			"alpha %g, %u shuffles, least step %g: 0 to 0.5, 99 to 9999, 0 and more",
			o->alpha, o->shuffles, o->min_effect);
	if (o->alpha * (o->shuffles + 1) < 1)
		return err_set(e, EINVAL, "%u shuffles cannot reach alpha %g: take %.0f",
			       o->shuffles, o->alpha, ceil(1 / o->alpha) - 1);
	return 0;
}

int stats_changes(const double *v, size_t nvalues, const struct stats_change_options *opt,
		  struct stats_change out[STATS_CHANGES_MAX], size_t *n, struct err *e)
{
	cleanup_free double *values = calloc(3 * nvalues + 1, sizeof(*values));
	struct change_search s = { .o = *opt, .v = v, .n = nvalues, .ncuts = 2 };
	double centre, scale = 0;
	int ret;

	s.o.alpha = opt->alpha == 0 ? STATS_CHANGE_ALPHA : opt->alpha;
	s.o.shuffles = opt->shuffles ? opt->shuffles : STATS_CHANGE_SHUFFLES;
	s.state = opt->seed ? opt->seed : STATS_SEED;
	ret = change_check(&s, e);
	if (ret)
		return ret;
	if (!values)
		return err_set(e, ENOMEM, "out of memory for a history of %zu values", nvalues);
	s.unit = values;
	s.shuffled = values + nvalues;
	s.level = values + 2 * nvalues;
	s.cut[1] = nvalues;
	/*
	 * Values that differ by rounding only become equal; steps of large values keep their
	 * digits.
	 */
	centre = nvalues ? stats_mean(v, nvalues) : 0;
	for (size_t i = 0; i < nvalues; i++)
		scale = fmax(scale, fabs(v[i]));
	s.step = scale / DIGITS;
	for (size_t i = 0; i < nvalues && scale > 0; i++)
		s.unit[i] = rint((v[i] - centre) / scale * DIGITS);
	memcpy(s.level, s.unit, nvalues * sizeof(*s.level));
	if (s.o.dependent)
		s.phi = dependence(s.unit, nvalues, s.shuffled);
	make_independent(s.unit, nvalues, s.phi);
	split_all(&s);
	if (s.phi > 0)
		place_changes(&s);
	drop_small(&s);
	if (s.o.levels)
		judge_levels(&s);
	*n = 0;
	for (size_t k = 1; k + 1 < s.ncuts; k++)
		if (!s.o.levels || s.is_level[k])
			out[(*n)++] = s.found[k];
	return 0;
}

double stats_change_least_p(size_t left, size_t right)
{
	double n = 1;

	if (left < STATS_CHANGE_SEGMENT || right < STATS_CHANGE_SEGMENT)
		return 1;
	for (size_t i = 1; i <= left && n < 1e15; i++)
		n *= (double)(right + i) / (double)i;
	/* The order that was seen, and its mirror image. */
	return fmin(1, 2 / n);
}

bool stats_change_is_possible(size_t n, double alpha)
{
	return n >= 2 * STATS_CHANGE_SEGMENT && stats_change_least_p(n / 2, n - n / 2) <= alpha;
}

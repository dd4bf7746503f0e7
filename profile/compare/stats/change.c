/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/stats/change.h"

#include "profile/compare/stats/permute.h"
#include "profile/compare/stats/power.h"
#include "profile/compare/stats/wander.h"

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

/* Where two segments meet. */
struct change_cut {
	size_t at;
	struct stats_change found;
	bool is_level; /* it changes the level, and not the spread alone */
	bool drifts;   /* a straight line explains what it splits better than levels do */
};

/* Work on one series, with room for shuffles of it. */
struct change_search {
	struct stats_change_options o;
	const double *v;
	size_t n;
	double *shuffled, *unit;
	double *room;		    /* for wander_test() */
	uint64_t state, simulation; /* states of the random number generator */
	struct change_cut
		cut[STATS_CHANGES_MAX + 2]; /* the first value, changes in order, the end */
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

/* Returns p of a change of level, and of one of spread, against dependence alone as what explains a segment. */
static struct wander_p wander_p(struct change_search *s, size_t from, size_t n)
{
	const struct wander_options o = { .least = STATS_CHANGE_SEGMENT,
					  .alpha = s->o.alpha,
					  .simulated = s->o.shuffles,
					  .resolution = 0.5 };

	if (!s->o.dependent)
		return (struct wander_p){ 0 };
	return wander_test(s->unit + from, n, &o, &s->simulation, s->room);
}

/*
 * Judges a split of segment k that is a change if values are independent. Returns whether it is one although they depend on
 * each other. Sets *cut but for its place.
 */
static bool is_change(struct change_search *s, size_t k, struct change_cut *cut)
{
	const struct wander_p w = wander_p(s, s->cut[k].at, s->cut[k + 1].at - s->cut[k].at);
	const double p = fmin(w.level, w.spread);

	*cut = (struct change_cut){ .is_level = w.level <= s->o.alpha };
	cut->drifts = w.drifts && cut->is_level;
	if (p <= s->o.alpha) {
		cut->found.p = p;
		return true;
	}
	/* Each piece of a drift may be explained by itself, unlike the whole. */
	cut->is_level = cut->drifts = s->cut[k].drifts || s->cut[k + 1].drifts;
	return cut->drifts;
}

static void split_all(struct change_search *s)
{
	size_t k = 0;

	/* Segments before k have no change; a split one is looked at again, from its left part on. */
	while (k + 1 < s->ncuts && s->ncuts < STATS_CHANGES_MAX + 2) {
		const size_t from = s->cut[k].at, n = s->cut[k + 1].at - from;
		struct change_split best = { 0 };
		struct change_cut cut;
		double p = 1;

		if (n >= 2 * STATS_CHANGE_SEGMENT)
			best = best_split(s->unit + from, n, STATS_CHANGE_SEGMENT);
		if (best.at && best.energy > 0)
			p = split_p(s, from, n, best.energy);
		if (p > s->o.alpha || !is_change(s, k, &cut)) {
			k++;
			continue;
		}
		cut.at = cut.found.at = from + best.at;
		cut.found.p = fmax(cut.found.p, p);
		cut.found.energy = best.energy * s->step;
		memmove(s->cut + k + 2, s->cut + k + 1, (s->ncuts - k - 1) * sizeof(*s->cut));
		s->cut[k + 1] = cut;
		s->ncuts++;
	}
}

static void remove_cut(struct change_search *s, size_t k)
{
	memmove(s->cut + k, s->cut + k + 1, (s->ncuts - k - 1) * sizeof(*s->cut));
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

/* Returns the sum of squares about the mean, or about a straight line. */
static double squares(const double *x, size_t n, bool line)
{
	const double mean = stats_mean(x, n), mid = (double)(n - 1) / 2;
	double xx = 0, tx = 0, tt = 0;

	for (size_t i = 0; i < n; i++) {
		double t = (double)i - mid;

		xx += (x[i] - mean) * (x[i] - mean);
		tx += t * (x[i] - mean);
		tt += t * t;
	}
	return line ? xx - tx * tx / tt : xx;
}

/* Returns whether one straight line fits the two segments that meet at a cut better than two levels do. */
static bool is_gradual(const struct change_search *s, size_t k)
{
	const double *x = s->unit + s->cut[k - 1].at;
	const size_t m = s->cut[k].at - s->cut[k - 1].at, n = s->cut[k + 1].at - s->cut[k - 1].at;

	return squares(x, n, true) < squares(x, m, false) + squares(x + m, n - m, false);
}

/* Distinguishes changes of level from those of spread or shape only, each by the two segments that meet there. */
static void judge_levels(struct change_search *s)
{
	for (size_t k = 1; k + 1 < s->ncuts; k++) {
		struct change_cut *cut = &s->cut[k];
		const size_t m = cut->at - cut[-1].at, n = cut[1].at - cut->at;

		cut->found.gradual = cut->drifts || is_gradual(s, k);
		if (!cut->is_level)
			cut->is_level = wander_p(s, cut[-1].at, m + n).level <= s->o.alpha;
		cut->is_level &=
			level_p(s->unit + cut[-1].at, m, s->unit + cut->at, n) <= s->o.alpha;
	}
}

/* Fills in the means left and right of each cut, and removes the smallest step while it is below min_effect. */
static void drop_small(struct change_search *s)
{
	for (;;) {
		double least = HUGE_VAL;
		size_t which = 0;

		for (size_t k = 1; k + 1 < s->ncuts; k++) {
			struct stats_change *c = &s->cut[k].found;
			double step;

			c->before = stats_mean(s->v + s->cut[k - 1].at,
					       s->cut[k].at - s->cut[k - 1].at);
			c->after = stats_mean(s->v + s->cut[k].at, s->cut[k + 1].at - s->cut[k].at);
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
	cleanup_free double *values = calloc(4 * nvalues + 1, sizeof(*values));
	struct change_search s = { .o = *opt, .v = v, .n = nvalues, .ncuts = 2 };
	double centre, scale = 0;
	int ret;

	s.o.alpha = opt->alpha == 0 ? STATS_CHANGE_ALPHA : opt->alpha;
	s.o.shuffles = opt->shuffles ? opt->shuffles : STATS_CHANGE_SHUFFLES;
	s.state = opt->seed ? opt->seed : STATS_SEED;
	s.simulation = s.state;
	ret = change_check(&s, e);
	if (ret)
		return ret;
	if (!values)
		return err_set(e, ENOMEM, "out of memory for a history of %zu values", nvalues);
	s.unit = values;
	s.shuffled = values + nvalues;
	s.room = values + 2 * nvalues;
	s.cut[1].at = nvalues;
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
	split_all(&s);
	drop_small(&s);
	if (s.o.levels)
		judge_levels(&s);
	*n = 0;
	for (size_t k = 1; k + 1 < s.ncuts; k++)
		if (!s.o.levels || s.cut[k].is_level)
			out[(*n)++] = s.cut[k].found;
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

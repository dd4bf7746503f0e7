/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/stats/change.h"

#include "profile/compare/stats/verdict.h"

#include "base/cleanup.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Values are rounded to so many parts of the largest: noise of rounding must not tell them apart. */
#define DIGITS 1e13

/* Work on one series, with room for shuffles of it. */
struct change_search {
	struct stats_change_options o;
	const double *v;
	size_t n;
	double *shuffled, *unit;
	uint64_t state;
	size_t cut[STATS_CHANGES_MAX + 2];		  /* 0, changes in order, n */
	struct stats_change found[STATS_CHANGES_MAX + 2]; /* found[i] belongs to cut[i] */
	size_t ncuts;
	double step; /* of values for one of unit[] */
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

/* Of all segments. *segment: which. */
static struct change_split best_of(const struct change_search *s, const double *x, size_t *segment)
{
	struct change_split best = { 0 };

	for (size_t k = 0; k + 1 < s->ncuts; k++) {
		size_t n = s->cut[k + 1] - s->cut[k];
		struct change_split one;

		if (n < 2 * STATS_CHANGE_SEGMENT)
			continue;
		one = best_split(x + s->cut[k], n, STATS_CHANGE_SEGMENT);
		if (one.at && (!best.at || one.energy > best.energy)) {
			best = (struct change_split){ s->cut[k] + one.at, one.energy };
			*segment = k;
		}
	}
	return best;
}

static void shuffle_segment(struct change_search *s, size_t from, size_t n)
{
	double *v = s->shuffled + from;

	memcpy(v, s->unit + from, n * sizeof(*v));
	for (size_t i = n; i > 1; i--) {
		unsigned int j = stats_pick(&s->state, (unsigned int)i);
		double t = v[j];

		v[j] = v[i - 1];
		v[i - 1] = t;
	}
}

/*
 * p of the best split: how often shuffling within segments gives one as large. Stops as soon
 * as it cannot be significant any more.
 */
static double split_p(struct change_search *s, double energy)
{
	unsigned int as_large = 1, all = s->o.shuffles + 1;

	for (unsigned int k = 1; k < all; k++) {
		size_t segment;

		for (size_t c = 0; c + 1 < s->ncuts; c++)
			shuffle_segment(s, s->cut[c], s->cut[c + 1] - s->cut[c]);
		as_large += best_of(s, s->shuffled, &segment).energy >= energy * (1 - 1e-9);
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
	while (s->ncuts < STATS_CHANGES_MAX + 2) {
		size_t segment = 0;
		struct change_split best = best_of(s, s->unit, &segment);
		double p;

		if (!best.at || !(best.energy > 0))
			break;
		p = split_p(s, best.energy);
		if (p > s->o.alpha)
			break;
		insert_cut(s, segment, &best, p);
	}
}

/* Means right and left of each cut; the smallest step goes while it is below min_effect. */
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
		memmove(s->cut + which, s->cut + which + 1,
			(s->ncuts - which - 1) * sizeof(*s->cut));
		memmove(s->found + which, s->found + which + 1,
			(s->ncuts - which - 1) * sizeof(*s->found));
		s->ncuts--;
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
	cleanup_free double *values = calloc(2 * nvalues + 1, sizeof(*values));
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
	s.cut[1] = nvalues;
	/* What differs by rounding only becomes equal; steps of large values keep digits. */
	centre = nvalues ? stats_mean(v, nvalues) : 0;
	for (size_t i = 0; i < nvalues; i++)
		scale = fmax(scale, fabs(v[i]));
	s.step = scale / DIGITS;
	for (size_t i = 0; i < nvalues && scale > 0; i++)
		s.unit[i] = rint((v[i] - centre) / scale * DIGITS);
	split_all(&s);
	drop_small(&s);
	memcpy(out, s.found + 1, (s.ncuts - 2) * sizeof(*out));
	*n = s.ncuts - 2;
	return 0;
}

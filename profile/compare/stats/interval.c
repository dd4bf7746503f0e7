/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Intervals of a difference of means or quantiles by the bootstrap over runs. Relative ones are
 * of the logarithm of the ratio, where they are the same read from either side.
 */
#include "profile/compare/stats/interval.h"

#include "profile/compare/stats/permute.h"
#include "profile/compare/stats/power.h"

#include <math.h>
#include <stdlib.h>

/* The terms of an estimate of means; x and y are centred about mean_x and mean_y. */
struct sides {
	const struct stats_design *d;
	double x[STATS_MAX_RUNS], y[STATS_MAX_RUNS];
	double mean_x, mean_y;
	bool relative;
};

struct sums {
	double x, y, xx, yy, xy;
};

static bool interval_finish(const struct sides *s, const struct sums *t, double *estimate,
			    double *se)
{
	double na = s->d->nbase, nb = s->d->nhead, ma = t->x / na, mb = t->y / nb;
	double va = fmax(t->xx / na - ma * ma, 0) / (na - 1);
	double vb = fmax(t->yy / nb - mb * mb, 0) / (nb - 1);
	double cov = s->d->pairs ? (t->xy / na - ma * mb) / (na - 1) : 0;
	double fa = 1, fb = 1;

	if (s->relative) {
		fa = s->mean_x + ma;
		fb = s->mean_y + mb;
		if (!(fa > 0 && fb > 0))
			return false;
		*estimate = log(fb / fa);
	} else {
		*estimate = s->mean_y - s->mean_x + mb - ma;
	}
	*se = sqrt(fmax(va / fa / fa + vb / fb / fb - 2 * cov / fa / fb, 0));
	return true;
}

static void sums_of(const struct sides *s, const uint16_t *pick, struct sums *t)
{
	unsigned int na = s->d->nbase, nb = s->d->nhead;

	*t = (struct sums){ 0 };
	for (unsigned int i = 0; i < na; i++) {
		double x = s->x[pick ? pick[i] : i];

		t->x += x;
		t->xx += x * x;
		if (s->d->pairs)
			t->xy += x * s->y[pick ? pick[na + i] : i];
	}
	for (unsigned int i = 0; i < nb; i++) {
		double y = s->y[pick ? pick[na + i] : i];

		t->y += y;
		t->yy += y * y;
	}
}

/* The draws of pairs give places of both sides; what was seen is summed in the same pairs. */
static void seen_sums(const struct sides *s, struct sums *t)
{
	uint16_t pick[2 * STATS_MAX_RUNS];
	unsigned int na = s->d->nbase;

	if (!s->d->pairs) {
		sums_of(s, NULL, t);
		return;
	}
	for (unsigned int i = 0; i < na; i++) {
		pick[i] = (uint16_t)i;
		for (unsigned int j = 0; j < na; j++) {
			if (s->d->block[na + j] == s->d->block[i])
				pick[na + i] = (uint16_t)j;
		}
	}
	sums_of(s, pick, t);
}

static double rank(double *v, size_t n, double p)
{
	double at = p * ((double)n + 1) - 1;

	if (at < 0)
		at = 0;
	if (at > (double)n - 1)
		at = (double)n - 1;
	return stats_select(v, n, (size_t)(at + 0.5));
}

/* Welch and Satterthwaite's degrees of freedom; of pairs n - 1. */
static double freedom(const struct sides *s)
{
	double na = s->d->nbase, nb = s->d->nhead;
	double a = stats_variance(s->x, s->d->nbase) / na,
	       b = stats_variance(s->y, s->d->nhead) / nb;

	if (s->relative) {
		a /= s->mean_x * s->mean_x;
		b /= s->mean_y * s->mean_y;
	}
	if (s->d->pairs || !(a + b > 0))
		return na - 1;
	return (a + b) * (a + b) / (a * a / (na - 1) + b * b / (nb - 1));
}

/* |t| about what was seen, of all draws that have one. */
static size_t bootstrap(const struct sides *s, double estimate)
{
	const struct stats_deals *r = &s->d->deals;
	size_t kept = 0;

	for (size_t k = 0; k < STATS_RESAMPLES; k++) {
		struct sums sum;
		double e, se;

		sums_of(s, r->draw + k * (r->na + r->nb), &sum);
		if (interval_finish(s, &sum, &e, &se) && se > 0)
			r->scratch[kept++] = fabs((e - estimate) / se);
	}
	return kept;
}

static void find_interval(const struct sides *s, double confidence, double *lo, double *hi)
{
	double estimate, se, half = 0;
	struct sums seen;

	seen_sums(s, &seen);
	if (!interval_finish(s, &seen, &estimate, &se)) {
		*lo = *hi = NAN;
		return;
	}
	/* Else nothing varies but by rounding. */
	if (se > 1e-13 * (s->relative ? 1 : fmax(fabs(s->mean_x), fabs(s->mean_y)))) {
		size_t n = bootstrap(s, estimate);

		/* With few different values draws often have no spread: Welch's, or the paired t. */
		half = se * (n > STATS_RESAMPLES / 10 * 9
				     ? rank(s->d->deals.scratch, n, confidence)
				     : stats_t_quantile((1 + confidence) / 2, freedom(s)));
	}
	*lo = estimate - half;
	*hi = estimate + half;
}

void stats_interval_means(const struct stats_sides *of, double *lo, double *hi)
{
	const struct stats_design *d = of->design;
	struct sides s = { .d = d,
			   .mean_x = stats_mean(of->base, d->nbase),
			   .mean_y = stats_mean(of->head, d->nhead),
			   .relative = of->relative };

	for (unsigned int i = 0; i < d->nbase; i++)
		s.x[i] = of->base[i] - s.mean_x;
	for (unsigned int i = 0; i < d->nhead; i++)
		s.y[i] = of->head[i] - s.mean_y;
	find_interval(&s, of->confidence, lo, hi);
	if (of->relative) {
		*lo = expm1(*lo);
		*hi = expm1(*hi);
	}
}

void stats_interval_quantiles(const struct stats_sides *s, double quantile, double *lo, double *hi)
{
	const struct stats_deals *r = &s->design->deals;
	double x[STATS_MAX_RUNS], y[STATS_MAX_RUNS];
	const uint16_t *pick = r->draw;
	size_t kept = 0;

	for (size_t k = 0; k < STATS_RESAMPLES; k++) {
		double a, b;

		for (unsigned int i = 0; i < r->na; i++)
			x[i] = s->base[*pick++];
		for (unsigned int i = 0; i < r->nb; i++)
			y[i] = s->head[*pick++];
		qsort(x, r->na, sizeof(*x), stats_compare_doubles);
		qsort(y, r->nb, sizeof(*y), stats_compare_doubles);
		a = stats_quantile_sorted(x, r->na, quantile);
		b = stats_quantile_sorted(y, r->nb, quantile);
		if (!s->relative)
			r->scratch[kept++] = b - a;
		else if (a > 0)
			r->scratch[kept++] = b / a - 1;
	}
	*lo = *hi = NAN;
	if (kept) {
		*lo = rank(r->scratch, kept, (1 - s->confidence) / 2);
		*hi = rank(r->scratch, kept, (1 + s->confidence) / 2);
	}
}

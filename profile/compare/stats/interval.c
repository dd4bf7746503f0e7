/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Intervals of a difference of means or quantiles by the bootstrap over runs. Relative ones are
 * of the logarithm of the ratio, where they are the same read from either side.
 */
#include "profile/compare/stats/permute.h"

#include "profile/compare/stats/power.h"

#include <math.h>
#include <stdlib.h>

/* What an estimate of means is made of; x and y are centred about mean_x and mean_y. */
struct sides {
	const struct gate_design *d;
	double x[GATE_MAX_RUNS], y[GATE_MAX_RUNS];
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
	uint16_t pick[2 * GATE_MAX_RUNS];
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
	return gate_select(v, n, (size_t)(at + 0.5));
}

/* Welch and Satterthwaite's degrees of freedom; of pairs n - 1. */
static double freedom(const struct sides *s)
{
	double na = s->d->nbase, nb = s->d->nhead;
	double a = gate_variance(s->x, s->d->nbase) / na, b = gate_variance(s->y, s->d->nhead) / nb;

	if (s->relative) {
		a /= s->mean_x * s->mean_x;
		b /= s->mean_y * s->mean_y;
	}
	if (s->d->pairs || !(a + b > 0))
		return na - 1;
	return (a + b) * (a + b) / (a * a / (na - 1) + b * b / (nb - 1));
}

static void welch(const struct sides *s, double estimate, double se, double tail, double *lo,
		  double *hi)
{
	double t = gate_t_quantile(1 - tail, freedom(s));

	*lo = estimate - t * se;
	*hi = estimate + t * se;
}

/* Of the skewness of the influence of each run, or pair, on the estimate. */
static double acceleration(const struct sides *s)
{
	double fa = s->relative ? s->mean_x : 1, fb = s->relative ? s->mean_y : 1, two = 0,
	       three = 0;
	unsigned int na = s->d->nbase, nb = s->d->nhead;

	for (unsigned int i = 0; i < na; i++) {
		double u = -s->x[i] / fa / na;

		for (unsigned int j = 0; s->d->pairs && j < nb; j++) {
			if (s->d->block[na + j] == s->d->block[i])
				u += s->y[j] / fb / nb;
		}
		two += u * u;
		three += u * u * u;
	}
	for (unsigned int i = 0; !s->d->pairs && i < nb; i++) {
		double u = s->y[i] / fb / nb;

		two += u * u;
		three += u * u * u;
	}
	return two > 0 ? three / (6 * pow(two, 1.5)) : 0;
}

/* out: from, to. */
static void bca(const struct sides *s, double *v, size_t n, double estimate, double tail,
		double out[2])
{
	double below = 0, a = acceleration(s), z0, zl, zh;

	for (size_t i = 0; i < n; i++)
		below += v[i] < estimate ? 1 : v[i] > estimate ? 0 : 0.5;
	z0 = gate_normal_quantile(fmin(fmax(below / (double)n, 1e-4), 1 - 1e-4));
	zl = z0 + gate_normal_quantile(tail);
	zh = z0 - gate_normal_quantile(tail);
	out[0] = rank(v, n, gate_normal_cdf(z0 + zl / (1 - a * zl)));
	out[1] = rank(v, n, gate_normal_cdf(z0 + zh / (1 - a * zh)));
}

/* The values of all draws that have one: estimates, or t about what was seen. */
static size_t bootstrap(const struct sides *s, double estimate, bool t)
{
	const struct runstats *r = &s->d->deals;
	size_t kept = 0;

	for (size_t k = 0; k < RUNSTATS_RESAMPLES; k++) {
		struct sums sum;
		double e, se;

		sums_of(s, r->draw + k * (r->na + r->nb), &sum);
		if (!interval_finish(s, &sum, &e, &se))
			continue;
		if (!t)
			r->scratch[kept++] = e;
		else if (se > 0)
			r->scratch[kept++] = (e - estimate) / se;
	}
	return kept;
}

static void find_interval(const struct sides *s, double tail, enum gate_interval how, double *lo,
			  double *hi)
{
	double estimate, se, *v = s->d->deals.scratch;
	struct sums seen;
	size_t n = 0;

	seen_sums(s, &seen);
	if (!interval_finish(s, &seen, &estimate, &se)) {
		*lo = *hi = NAN;
		return;
	}
	*lo = *hi = estimate;
	/* Nothing varies but by rounding. */
	if (!(se > 1e-13 * (s->relative ? 1 : fmax(fabs(s->mean_x), fabs(s->mean_y)))))
		return;
	if (how != GATE_I_WELCH)
		n = bootstrap(s, estimate, how == GATE_I_T || how == GATE_I_SYMMETRIC);
	if (how == GATE_I_PERCENTILE && n) {
		*lo = rank(v, n, tail);
		*hi = rank(v, n, 1 - tail);
	} else if (how == GATE_I_BCA && n) {
		double both[2];

		bca(s, v, n, estimate, tail, both);
		*lo = both[0];
		*hi = both[1];
	} else if (how == GATE_I_T && n > RUNSTATS_RESAMPLES / 10 * 9) {
		*hi = estimate - rank(v, n, tail) * se;
		*lo = estimate - rank(v, n, 1 - tail) * se;
	} else if (how == GATE_I_SYMMETRIC && n > RUNSTATS_RESAMPLES / 10 * 9) {
		for (size_t i = 0; i < n; i++)
			v[i] = fabs(v[i]);
		*hi = estimate + rank(v, n, 1 - 2 * tail) * se;
		*lo = estimate - rank(v, n, 1 - 2 * tail) * se;
	} else {
		/* So few different values that draws often have no spread. */
		welch(s, estimate, se, tail, lo, hi);
	}
}

void gate_interval_means(const struct gate_sides *of, enum gate_interval how, double *lo,
			 double *hi)
{
	const struct gate_design *d = of->design;
	struct sides s = { .d = d,
			   .mean_x = gate_mean(of->base, d->nbase),
			   .mean_y = gate_mean(of->head, d->nhead),
			   .relative = of->relative };

	for (unsigned int i = 0; i < d->nbase; i++)
		s.x[i] = of->base[i] - s.mean_x;
	for (unsigned int i = 0; i < d->nhead; i++)
		s.y[i] = of->head[i] - s.mean_y;
	find_interval(&s, (1 - of->confidence) / 2, how, lo, hi);
	if (of->relative) {
		*lo = expm1(*lo);
		*hi = expm1(*hi);
	}
}

void gate_interval_quantiles(const struct gate_sides *s, double quantile, double *lo, double *hi)
{
	const struct runstats *r = &s->design->deals;
	double x[GATE_MAX_RUNS], y[GATE_MAX_RUNS];
	const uint16_t *pick = r->draw;
	size_t kept = 0;

	for (size_t k = 0; k < RUNSTATS_RESAMPLES; k++) {
		double a, b;

		for (unsigned int i = 0; i < r->na; i++)
			x[i] = s->base[*pick++];
		for (unsigned int i = 0; i < r->nb; i++)
			y[i] = s->head[*pick++];
		qsort(x, r->na, sizeof(*x), gate_compare_doubles);
		qsort(y, r->nb, sizeof(*y), gate_compare_doubles);
		a = gate_quantile_sorted(x, r->na, quantile);
		b = gate_quantile_sorted(y, r->nb, quantile);
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

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/stats/permute.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * Sums in another order differ in their last bits, and so does 0.1 + 0.2 from 0.3: what differs by
 * this part of the largest value, for each run that was summed, are ties.
 */
#define ROUNDING 1e-13

int stats_compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double stats_mean(const double *v, size_t n)
{
	double t = 0;

	for (size_t i = 0; i < n; i++)
		t += v[i] / (double)n;
	return t;
}

double stats_variance(const double *v, size_t n)
{
	double m = stats_mean(v, n), t = 0;

	for (size_t i = 0; i < n; i++)
		t += (v[i] - m) * (v[i] - m);
	return n > 1 ? t / (double)(n - 1) : 0;
}

double stats_quantile_sorted(const double *v, unsigned int n, double q)
{
	double at = q * (n - 1);
	unsigned int i = (unsigned int)at;

	return i + 1 < n ? v[i] + (at - i) * (v[i + 1] - v[i]) : v[n - 1];
}

double stats_select(double *v, size_t n, size_t k)
{
	size_t lo = 0, hi = n - 1;

	while (lo < hi) {
		double pivot = v[lo + (hi - lo) / 2];
		size_t i = lo, j = hi;

		for (;;) {
			double t;

			while (v[i] < pivot)
				i++;
			while (v[j] > pivot)
				j--;
			if (i >= j)
				break;
			t = v[i];
			v[i++] = v[j];
			v[j--] = t;
		}
		/* v[lo..j] <= pivot <= v[j+1..hi] */
		if (k <= j)
			hi = j;
		else
			lo = j + 1;
	}
	return v[k];
}

struct counts {
	size_t up, down, two;
};

static void permute_count(struct counts *c, double t, double seen, double tie)
{
	c->up += t >= seen - tie;
	c->down += t <= seen + tie;
	c->two += fabs(t) >= fabs(seen) - tie;
}

/* -- means ---------------------------------------------------------------------------------- */

/*
 * v is centred. With equal sides a difference of means orders deals as t does, and is quicker:
 * base's sum alone, as the total is 0.
 */
static void permute_sums(const struct stats_deals *s, const double *v, double tie, struct counts *c)
{
	const uint16_t *d = s->deal;
	double seen = 0;

	for (unsigned int i = 0; i < s->na; i++)
		seen -= v[i];
	for (size_t k = 0; k < s->ndeals; k++) {
		double t = 0;

		for (unsigned int i = 0; i < s->na; i++)
			t -= v[*d++];
		permute_count(c, t, seen, tie);
	}
}

struct welch {
	double total, squares, na, nb, tie;
};

/* sum and squares of base's values. No spread: 0, or beyond all others. */
static double welch(const struct welch *w, double sum, double squares)
{
	double rest = w->total - sum, diff = rest / w->nb - sum / w->na;
	double va = (squares - sum * sum / w->na) / (w->na - 1) / w->na;
	double vb = (w->squares - squares - rest * rest / w->nb) / (w->nb - 1) / w->nb;
	double var = fmax(va, 0) + fmax(vb, 0);

	if (fabs(diff) <= w->tie)
		return 0;
	return var > 1e-12 * w->squares ? diff / sqrt(var) : copysign(HUGE_VAL, diff);
}

static void permute_welch(const struct stats_deals *s, const double *v, double tie,
			  struct counts *c)
{
	struct welch w = { .na = s->na, .nb = s->nb, .tie = tie };
	const uint16_t *d = s->deal;
	double seen = 0;

	for (unsigned int i = 0; i < s->na + s->nb; i++) {
		w.total += v[i];
		w.squares += v[i] * v[i];
	}
	for (size_t k = 0; k < s->ndeals; k++) {
		double sum = 0, squares = 0, t;

		for (unsigned int i = 0; i < s->na; i++, d++) {
			sum += v[*d];
			squares += v[*d] * v[*d];
		}
		t = welch(&w, sum, squares);
		/* The first deal is what was seen. */
		if (!k)
			seen = t;
		permute_count(c, t, seen, isinf(seen) ? 0 : 1e-9 * fabs(seen));
	}
}

/* -- quantiles ------------------------------------------------------------------------------ */

struct permute_ranked {
	double v;
	uint16_t run;
};

static int compare_ranked(const void *a, const void *b)
{
	return stats_compare_doubles(&((const struct permute_ranked *)a)->v,
				     &((const struct permute_ranked *)b)->v);
}

/* Returns the quantile of those of n sorted values whose run is (not) marked as base. */
static double marked_quantile(const struct permute_ranked *r, unsigned int n, const bool *mark,
			      bool base, unsigned int of, double q)
{
	double at = q * (of - 1), low = 0;
	unsigned int want = (unsigned int)at, seen = 0;

	for (unsigned int i = 0; i < n; i++) {
		if (mark[r[i].run] != base)
			continue;
		if (seen == want + 1)
			return low + (at - want) * (r[i].v - low);
		if (seen == want)
			low = r[i].v;
		seen++;
	}
	return low;
}

static void permute_quantiles(const struct stats_deals *s, const double *v, double q, double tie,
			      struct counts *c)
{
	struct permute_ranked r[2 * STATS_MAX_RUNS];
	bool mark[2 * STATS_MAX_RUNS];
	unsigned int n = s->na + s->nb;
	const uint16_t *d = s->deal;
	double seen = 0;

	for (unsigned int i = 0; i < n; i++)
		r[i] = (struct permute_ranked){ v[i], (uint16_t)i };
	qsort(r, n, sizeof(*r), compare_ranked);
	for (size_t k = 0; k < s->ndeals; k++) {
		double t;

		memset(mark, 0, sizeof(mark));
		for (unsigned int i = 0; i < s->na; i++)
			mark[*d++] = true;
		t = marked_quantile(r, n, mark, false, s->nb, q) -
		    marked_quantile(r, n, mark, true, s->na, q);
		if (!k)
			seen = t;
		permute_count(c, t, seen, tie);
	}
}

void stats_permute(const struct stats_design *d, const double *v, enum stats_location location,
		   double quantile, struct stats_p *out)
{
	const struct stats_deals *s = &d->deals;
	unsigned int n = s->na + s->nb;
	double centred[2 * STATS_MAX_RUNS], mean = stats_mean(v, n), tie = 0;
	struct counts c = { 0 };

	/* Large values with small differences keep their digits. */
	for (unsigned int i = 0; i < n; i++) {
		centred[i] = v[i] - mean;
		tie = fmax(tie, ROUNDING * n * fabs(v[i]));
	}
	if (location == STATS_QUANTILE)
		permute_quantiles(s, centred, quantile, tie, &c);
	else if (s->na == s->nb)
		permute_sums(s, centred, tie, &c);
	else
		permute_welch(s, centred, tie, &c);
	*out = (struct stats_p){ (double)c.up / (double)s->ndeals,
				 (double)c.down / (double)s->ndeals,
				 (double)c.two / (double)s->ndeals };
}

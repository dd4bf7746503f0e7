/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/stats/power.h"

#include "profile/compare/stats/permute.h"

#include "base/cleanup.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* -- what is known of the noise ---------------------------------------------------------------- */

static bool finite_values(const double *v, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		if (!(fabs(v[i]) <= 1e150))
			return false;
	}
	return true;
}

/* The head run of base run i's pair. */
static unsigned int partner(const struct gate_design *d, unsigned int i)
{
	for (unsigned int j = 0; j < d->nhead; j++) {
		if (d->block[d->nbase + j] == d->block[i])
			return j;
	}
	return 0;
}

int gate_spread_of(const struct gate_design *d, const double *base, const double *head,
		   struct gate_spread *out, struct err *e)
{
	struct gate_spread s = { .paired = d->pairs };
	double diff[GATE_MAX_RUNS];

	if (!finite_values(base, d->nbase) || !finite_values(head, d->nhead))
		return err_set(e, EINVAL, "a run's value is not a usable number");
	s.df = s.paired ? d->nbase - 1.0 : d->nbase + d->nhead - 2.0;
	if (s.df < 1)
		return err_set(e, EINVAL,
			       "%u and %u runs do not show how runs differ; more are needed",
			       d->nbase, d->nhead);
	s.base = gate_mean(base, d->nbase);
	if (s.paired) {
		for (unsigned int i = 0; i < d->nbase; i++)
			diff[i] = head[partner(d, i)] - base[i];
		s.sd = sqrt(gate_variance(diff, d->nbase) / 2);
	} else {
		s.sd = sqrt((gate_variance(base, d->nbase) * (d->nbase - 1) +
			     gate_variance(head, d->nhead) * (d->nhead - 1)) /
			    s.df);
	}
	*out = s;
	return 0;
}

/* -- the noncentral t -------------------------------------------------------------------------- */

/*
 * P(Z + shift > max(t S, floor)): Z normal, S the root of chi-square over df, independent. The
 * integral over S by Simpson's rule within eight standard deviations.
 */
static double tail(double shift, double t, double floor, double df)
{
	const unsigned int steps = 200;
	double width = 8 / sqrt(2 * df), lo = fmax(1e-9, 1 - width), hi = 1 + width * 1.5, sum = 0;
	double h = (hi - lo) / steps, norm = 0;

	for (unsigned int i = 0; i <= steps; i++) {
		double s = lo + h * i, w = i == 0 || i == steps ? 1 : i % 2 ? 4 : 2;
		/* Density of S without its constant, which `norm` is. */
		double f = w * exp((df - 1) * log(s) - df * (s * s - 1) / 2);

		sum += f * gate_normal_cdf(shift - fmax(t * s, floor));
		norm += f;
	}
	return sum / norm;
}

static double in_values(const struct gate_spread *s, const struct gate_rule *r, double effect)
{
	switch (r->unit) {
	case GATE_RELATIVE:
		return effect * s->base;
	case GATE_POINTS:
		return effect / 100;
	default:
		return effect;
	}
}

struct plan {
	double se, df, level; /* level: what alpha the permutation test really has */
};

/* The number of ways to deal. */
static double deals(bool paired, unsigned int na, unsigned int nb)
{
	double n = 1;

	if (paired)
		return na < 60 ? ldexp(1, (int)na) : HUGE_VAL;
	for (unsigned int i = 1; i <= na && n < 1e15; i++)
		n *= (double)(nb + i) / i;
	return n;
}

/* p is a multiple of 1/deals: the largest not over alpha, and not over what resamples give. */
static double real_level(double alpha, double ndeals, bool two)
{
	double step = (two ? 2 : 1) / ndeals;

	if (ndeals > RUNSTATS_EXACT_MAX)
		step = 1.0 / (RUNSTATS_RESAMPLES + 1);
	return floor(alpha / step * (1 + 1e-9)) * step;
}

static struct plan plan_of(const struct gate_spread *s, const struct gate_rule *r, unsigned int na,
			   unsigned int nb)
{
	double alpha = r->alpha == 0 ? GATE_ALPHA : r->alpha;
	bool two = r->worse == GATE_EITHER;
	struct plan p = { .se = s->sd * sqrt(1.0 / na + 1.0 / nb),
			  .df = s->paired ? na - 1.0 : na + nb - 2.0 };

	p.level = real_level(alpha, deals(s->paired, na, nb), two);
	/* Pairs that cannot reach alpha are joined to blocks, which are nearly free. */
	if (s->paired && !(p.level > 0)) {
		p.level = real_level(alpha, deals(false, na, nb), two);
		p.df = na + nb - 3.0;
	}
	return p;
}

static double power_of(const struct gate_spread *s, const struct gate_rule *r, const struct plan *p,
		       double effect)
{
	bool two = r->worse == GATE_EITHER;
	double change = in_values(s, r, effect), least = in_values(s, r, r->min_effect), t;

	if (!(p->level > 0) || p->df < 1)
		return 0;
	if (!(p->se > 0))
		return (r->strict ? change > least : change >= least) ? 1 : 0;
	t = gate_t_quantile(1 - p->level / (two ? 2 : 1), p->df);
	if (r->strict)
		return tail((change - least) / p->se, t, -HUGE_VAL, p->df);
	return tail(change / p->se, t, least / p->se, p->df);
}

double gate_detectable(const struct gate_spread *s, const struct gate_rule *r, unsigned int nbase,
		       unsigned int nhead, double power)
{
	const struct plan p = plan_of(s, r, nbase, nhead);
	double lo = 0, hi = r->min_effect;

	if (!(p.level > 0) || p.df < 1)
		return INFINITY;
	for (unsigned int i = 0; i < 200 && power_of(s, r, &p, hi) < power; i++) {
		lo = hi;
		hi *= 2;
	}
	if (!isfinite(hi) || power_of(s, r, &p, hi) < power)
		return INFINITY;
	while (hi - lo > 1e-6 * hi) {
		double mid = lo + (hi - lo) / 2;

		if (power_of(s, r, &p, mid) < power)
			lo = mid;
		else
			hi = mid;
	}
	return hi;
}

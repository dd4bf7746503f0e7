/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/stats/power.h"

#include "profile/compare/stats/permute.h"

#include "base/cleanup.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/*
 * -- distributions -------------------------------------------------------------------------------
 * Accuracy: 1e-9 and better, far beyond what the approximations that use them deserve; unit tests
 * compare with published tables.
 */

double stats_normal_cdf(double z)
{
	return 0.5 * erfc(-z * M_SQRT1_2);
}

static double log_gamma(double x)
{
	int sign; /* lgamma() has a global one */

	return lgamma_r(x, &sign);
}

/* The x at which a rising function reaches p, by bisection from a bracket that is widened. */
static double invert(double (*f)(double, double), double p, double df)
{
	double lo = -1, hi = 1;

	while (f(lo, df) > p && lo > -1e150)
		lo *= 2;
	while (f(hi, df) < p && hi < 1e150)
		hi *= 2;
	for (unsigned int i = 0; i < 200 && hi - lo > 1e-13 * (fabs(lo) + fabs(hi)); i++) {
		double mid = lo + (hi - lo) / 2;

		if (f(mid, df) < p)
			lo = mid;
		else
			hi = mid;
	}
	return lo + (hi - lo) / 2;
}

/*
 * Regularized incomplete beta: the continued fraction (DLMF 8.17.22) by Lentz's method, on the
 * side of the mean where it converges quickly.
 */
static double incomplete_beta(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1, d, h, front;

	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	if (x > (a + 1) / (a + b + 2))
		return 1 - incomplete_beta(b, a, 1 - x);
	front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log1p(-x)) /
		a;
	d = 1 - (a + b) * x / (a + 1);
	d = 1 / (fabs(d) < tiny ? tiny : d);
	h = d;
	for (unsigned int m = 1; m < 10000; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)), step;

		d = 1 + even * d;
		c = 1 + even / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = fabs(c) < tiny ? tiny : c;
		h *= d * c;
		d = 1 + odd * d;
		c = 1 + odd / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = fabs(c) < tiny ? tiny : c;
		step = d * c;
		h *= step;
		if (fabs(step - 1) < 1e-15)
			break;
	}
	return front * h;
}

double stats_t_cdf(double t, double df)
{
	double tail;

	/* With that many degrees of freedom, t is normal; lgamma() of large values would lose digits. */
	if (df > 1e6)
		return stats_normal_cdf(t);
	tail = incomplete_beta(df / 2, 0.5, df / (df + t * t)) / 2;
	return t > 0 ? 1 - tail : tail;
}

double stats_t_quantile(double p, double df)
{
	return p > 0.5 ? -invert(stats_t_cdf, 1 - p, df) : invert(stats_t_cdf, p, df);
}

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
static unsigned int partner(const struct stats_design *d, unsigned int i)
{
	for (unsigned int j = 0; j < d->nhead; j++) {
		if (d->block[d->nbase + j] == d->block[i])
			return j;
	}
	return 0;
}

int stats_spread_of(const struct stats_design *d, const double *base, const double *head,
		    struct stats_spread *out, struct err *e)
{
	struct stats_spread s = { .paired = d->pairs };
	double diff[STATS_MAX_RUNS];

	if (!finite_values(base, d->nbase) || !finite_values(head, d->nhead))
		return err_set(e, EINVAL, "a run's value is not a usable number");
	s.df = s.paired ? d->nbase - 1.0 : d->nbase + d->nhead - 2.0;
	if (s.df < 1)
		return err_set(e, EINVAL,
			       "%u and %u runs do not show how runs differ; more are needed",
			       d->nbase, d->nhead);
	s.base = stats_mean(base, d->nbase);
	if (s.paired) {
		for (unsigned int i = 0; i < d->nbase; i++)
			diff[i] = head[partner(d, i)] - base[i];
		s.sd = sqrt(stats_variance(diff, d->nbase) / 2);
	} else {
		s.sd = sqrt((stats_variance(base, d->nbase) * (d->nbase - 1) +
			     stats_variance(head, d->nhead) * (d->nhead - 1)) /
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

		sum += f * stats_normal_cdf(shift - fmax(t * s, floor));
		norm += f;
	}
	return sum / norm;
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

	if (ndeals > STATS_EXACT_MAX)
		step = 1.0 / (STATS_RESAMPLES + 1);
	return floor(alpha / step * (1 + 1e-9)) * step;
}

static struct plan plan_of(const struct stats_spread *s, const struct stats_rule *r,
			   unsigned int na, unsigned int nb)
{
	double alpha = r->alpha == 0 ? STATS_ALPHA : r->alpha;
	bool two = r->worse == STATS_EITHER;
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

static double power_of(const struct stats_spread *s, const struct stats_rule *r,
		       const struct plan *p, double effect)
{
	bool two = r->worse == STATS_EITHER;
	double change = stats_in_values(r, s->base, effect);
	double least = stats_in_values(r, s->base, r->min_effect), t;

	if (!(p->level > 0) || p->df < 1)
		return 0;
	if (!(p->se > 0))
		return (r->strict ? change > least : change >= least) ? 1 : 0;
	t = stats_t_quantile(1 - p->level / (two ? 2 : 1), p->df);
	if (r->strict)
		return tail((change - least) / p->se, t, -HUGE_VAL, p->df);
	return tail(change / p->se, t, least / p->se, p->df);
}

double stats_detectable(const struct stats_spread *s, const struct stats_rule *r,
			unsigned int nbase, unsigned int nhead, double power)
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

/* Returns the probability that unchanged code passes: that a change of min_effect is rejected at `miss`. */
static double pass_power(const struct stats_spread *s, const struct stats_rule *r,
			 const struct plan *p)
{
	const double miss = r->miss == 0 ? STATS_MISS : r->miss;
	double least = stats_in_values(r, s->base, r->min_effect), pass;

	if (!(p->se > 0))
		return 1;
	pass = tail(least / p->se, stats_t_quantile(1 - miss, p->df), -HUGE_VAL, p->df);
	/* Both directions are to be excluded. */
	return r->worse == STATS_EITHER ? fmax(0, 2 * pass - 1) : pass;
}

unsigned int stats_runs_needed(const struct stats_spread *s, const struct stats_rule *r,
			       double power)
{
	for (unsigned int n = 2; n <= STATS_MAX_RUNS; n++) {
		const struct plan p = plan_of(s, r, n, n);

		if (p.level > 0 && p.df >= 1 && pass_power(s, r, &p) >= power &&
		    power_of(s, r, &p, 2 * r->min_effect) >= power)
			return n;
	}
	return 0;
}

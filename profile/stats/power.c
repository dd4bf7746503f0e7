/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/stats/power.h"

#include "profile/stats/permute.h"

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

double gate_power(const struct gate_spread *s, const struct gate_rule *r, unsigned int nbase,
		  unsigned int nhead, double effect)
{
	struct plan p = plan_of(s, r, nbase, nhead);

	return power_of(s, r, &p, effect);
}

static double detectable(const struct gate_spread *s, const struct gate_rule *r,
			 const struct plan *p, double power)
{
	double lo = 0, hi = r->min_effect;

	if (!(p->level > 0) || p->df < 1)
		return INFINITY;
	for (unsigned int i = 0; i < 200 && power_of(s, r, p, hi) < power; i++) {
		lo = hi;
		hi *= 2;
	}
	if (!isfinite(hi) || power_of(s, r, p, hi) < power)
		return INFINITY;
	while (hi - lo > 1e-6 * hi) {
		double mid = lo + (hi - lo) / 2;

		if (power_of(s, r, p, mid) < power)
			lo = mid;
		else
			hi = mid;
	}
	return hi;
}

double gate_detectable(const struct gate_spread *s, const struct gate_rule *r, unsigned int nbase,
		       unsigned int nhead, double power)
{
	struct plan p = plan_of(s, r, nbase, nhead);

	return detectable(s, r, &p, power);
}

/* The least n from 2 on with f(n) >= power, as f rises but for steps of the level. */
static unsigned int least_runs(double (*f)(const struct gate_spread *, const struct gate_rule *,
					   unsigned int, double),
			       const struct gate_spread *s, const struct gate_rule *r,
			       double effect, double power)
{
	unsigned int lo, hi;

	for (unsigned int n = 2; n <= 32; n++) {
		if (f(s, r, n, effect) >= power)
			return n;
	}
	for (lo = 32, hi = 64; hi < GATE_RUNS_LIMIT && f(s, r, hi, effect) < power; hi *= 2)
		lo = hi;
	hi = hi < GATE_RUNS_LIMIT ? hi : GATE_RUNS_LIMIT;
	if (f(s, r, hi, effect) < power)
		return 0;
	while (hi - lo > 1) {
		unsigned int mid = lo + (hi - lo) / 2;

		if (f(s, r, mid, effect) < power)
			lo = mid;
		else
			hi = mid;
	}
	return hi;
}

static double power_with(const struct gate_spread *s, const struct gate_rule *r, unsigned int n,
			 double effect)
{
	return gate_power(s, r, n, n, effect);
}

unsigned int gate_runs_needed(const struct gate_spread *s, const struct gate_rule *r, double effect,
			      double power)
{
	return least_runs(power_with, s, r, effect, power);
}

/* That no change is told from D; with either side bad, from both. */
static double pass_with(const struct gate_spread *s, const struct gate_rule *r, unsigned int n,
			double effect)
{
	struct gate_rule missed = *r;
	struct plan p;
	double t, shift, one;

	missed.alpha = r->miss == 0 ? GATE_MISS : r->miss;
	missed.worse = GATE_HIGHER;
	p = plan_of(s, &missed, n, n);
	if (!(p.level > 0) || p.df < 1)
		return 0;
	if (!(p.se > 0))
		return 1;
	t = gate_t_quantile(1 - p.level, p.df);
	shift = (in_values(s, r, r->min_effect) - in_values(s, r, effect)) / p.se;
	one = tail(shift, t, -HUGE_VAL, p.df);
	return r->worse == GATE_EITHER ? fmax(0, 2 * one - 1) : one;
}

unsigned int gate_runs_to_pass(const struct gate_spread *s, const struct gate_rule *r, double power)
{
	return least_runs(pass_with, s, r, 0, power);
}

/* -- without a distribution -------------------------------------------------------------------- */

struct simulation {
	const struct gate_design *from;
	const struct gate_rule *rule;
	const double *base, *head;
	double base_rest[GATE_MAX_RUNS], head_rest[GATE_MAX_RUNS]; /* about their means, widened */
	double x[GATE_MAX_RUNS], y[GATE_MAX_RUNS];
};

static void prepare(struct simulation *s)
{
	unsigned int na = s->from->nbase, nb = s->from->nhead;
	double ma = gate_mean(s->base, na), mb = gate_mean(s->head, nb);

	for (unsigned int i = 0; i < na; i++)
		s->base_rest[i] = (s->base[i] - ma) * (na > 1 ? sqrt(na / (na - 1.0)) : 1);
	for (unsigned int i = 0; i < nb; i++)
		s->head_rest[i] = (s->head[i] - mb) * (nb > 1 ? sqrt(nb / (nb - 1.0)) : 1);
}

static void draw(struct simulation *s, unsigned int na, unsigned int nb, double effect,
		 uint64_t *state)
{
	double mean = gate_mean(s->base, s->from->nbase), to = mean + effect;

	if (s->rule->unit == GATE_RELATIVE)
		to = mean * (1 + effect);
	else if (s->rule->unit == GATE_POINTS)
		to = mean + effect / 100;
	for (unsigned int i = 0; i < na; i++) {
		unsigned int k = runstats_pick(state, s->from->nbase);

		s->x[i] = mean + s->base_rest[k];
		if (s->from->pairs)
			s->y[i] = to + s->head_rest[partner(s->from, k)];
	}
	for (unsigned int i = 0; i < nb && !s->from->pairs; i++)
		s->y[i] = to + s->head_rest[runstats_pick(state, s->from->nhead)];
	/* Widening must not make a time negative, which relative rules would refuse. */
	if (s->rule->unit == GATE_RELATIVE) {
		for (unsigned int i = 0; i < na; i++)
			s->x[i] = fmax(s->x[i], 0);
		for (unsigned int i = 0; i < nb; i++)
			s->y[i] = fmax(s->y[i], 0);
	}
}

static int layout_like(const struct gate_design *from, unsigned int na, unsigned int nb,
		       double alpha, struct gate_design *out, struct err *e)
{
	uint64_t base_at[GATE_MAX_RUNS], head_at[GATE_MAX_RUNS];
	struct gate_layout l = { .nbase = na, .nhead = nb, .alpha = alpha };

	for (unsigned int i = 0; i < na && from->pairs; i++) {
		base_at[i] = 2 * i;
		head_at[i] = 2 * i + 1;
	}
	if (from->pairs) {
		l.base_at = base_at;
		l.head_at = head_at;
	}
	return gate_design_init(out, &l, e);
}

int gate_power_resample(const struct gate_design *d, const struct gate_rule *r, const double *base,
			const double *head, unsigned int nbase, unsigned int nhead, double effect,
			unsigned int simulations, uint64_t seed, double *out, struct err *e)
{
	cleanup_free struct simulation *s = calloc(1, sizeof(*s));
	struct gate_rule quick = *r;
	struct gate_design design;
	struct gate_result result;
	unsigned int fails = 0;
	int ret;

	quick.confidence = -1;
	if (!s)
		return err_set(e, ENOMEM, "out of memory for simulated runs");
	if (!simulations || (d->pairs && nbase != nhead) || !isfinite(effect) || d->nbase < 2 ||
	    d->nhead < 2)
		return err_set(e, EINVAL,
			       "power of %u and %u runs from %u and %u: two a side, pairs equal",
			       nbase, nhead, d->nbase, d->nhead);
	ret = layout_like(d, nbase, nhead, r->alpha, &design, e);
	if (ret)
		return ret;
	/* The order is that of a drawing by chance: nothing to test in it. */
	design.ordered = false;
	*s = (struct simulation){ .from = d, .rule = r, .base = base, .head = head };
	prepare(s);
	for (unsigned int k = 0; k < simulations && !ret; k++) {
		draw(s, nbase, nhead, effect, &seed);
		ret = gate_compare(&design, &quick, s->x, s->y, &result, e);
		fails += !ret && result.verdict == GATE_FAIL;
	}
	gate_design_deinit(&design);
	if (!ret)
		*out = (double)fails / simulations;
	return ret;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How many samples does a run need, so that a share's counting noise does not matter? */
#include "profile/stats/power.h"

#include "profile/stats/permute.h"

#include <errno.h>
#include <math.h>

int gate_shares_of(const double *share, const double *samples, unsigned int n, double deff,
		   struct gate_shares *out, struct err *e)
{
	struct gate_shares s = { .deff = deff, .df = n - 1.0 };
	double counting = 0, hits = 0, all = 0;

	if (n < 2 || n > GATE_MAX_RUNS || !(deff >= 1 && deff <= 1e6))
		return err_set(e, EINVAL, "shares of %u runs, design effect %g: 2 to %u, 1 to 1e6",
			       n, deff, GATE_MAX_RUNS);
	for (unsigned int i = 0; i < n; i++) {
		if (!(share[i] >= 0 && share[i] <= 1 && samples[i] > 0 && isfinite(samples[i])))
			return err_set(e, EINVAL, "run %u: a share of %g of %g samples", i + 1,
				       share[i], samples[i]);
		hits += share[i] * samples[i];
		all += samples[i];
	}
	s.p = hits / all;
	for (unsigned int i = 0; i < n; i++)
		counting += deff * s.p * (1 - s.p) / samples[i] / n;
	s.tau = sqrt(fmax(0, gate_variance(share, n) - counting));
	*out = s;
	return 0;
}

static double spread_at(const struct gate_shares *s, double m)
{
	return sqrt(s->tau * s->tau + s->deff * s->p * (1 - s->p) / m);
}

static struct gate_rule in_points(const struct gate_rule *r, double points)
{
	struct gate_rule p = *r;

	/* A minimum effect as large as the move itself would be reached half of the time. */
	p.unit = GATE_POINTS;
	p.location = GATE_MEAN;
	if (r->unit != GATE_POINTS || p.min_effect >= points)
		p.min_effect = points / 2;
	return p;
}

double gate_samples_needed(const struct gate_shares *s, const struct gate_rule *r, unsigned int n,
			   double points, double power, unsigned int *runs)
{
	struct gate_rule rule = in_points(r, points);
	struct gate_spread spread = { .base = s->p, .sd = s->tau, .df = s->df };
	double lo = 1, hi = 1;

	if (runs)
		*runs = n;
	if (gate_power(&spread, &rule, n, n, points) < power) {
		if (runs)
			*runs = gate_runs_needed(&spread, &rule, points, power);
		return INFINITY;
	}
	for (; hi < 1e18; hi *= 2) {
		spread.sd = spread_at(s, hi);
		if (gate_power(&spread, &rule, n, n, points) >= power)
			break;
		lo = hi;
	}
	while (hi - lo > 1 && hi - lo > 1e-4 * hi) {
		double mid = lo + (hi - lo) / 2;

		spread.sd = spread_at(s, mid);
		if (gate_power(&spread, &rule, n, n, points) >= power)
			hi = mid;
		else
			lo = mid;
	}
	return hi < 1e18 ? ceil(hi) : INFINITY;
}

double gate_points_detectable(const struct gate_shares *s, const struct gate_rule *r,
			      unsigned int n, double m, double power)
{
	struct gate_spread spread = { .base = s->p, .sd = spread_at(s, m), .df = s->df };
	struct gate_rule rule = *r;

	rule.unit = GATE_POINTS;
	rule.location = GATE_MEAN;
	/* Without a floor of its own: what the samples can tell. */
	if (r->unit != GATE_POINTS)
		rule.min_effect = 1e-9;
	return gate_detectable(&spread, &rule, n, n, power);
}

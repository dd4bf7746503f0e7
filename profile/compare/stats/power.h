/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * power: computes which change these runs would have detected.
 *
 * The power of `fail` (verdict.h) is computed from the observed spread between runs with the
 * noncentral t distribution, which approximates the permutation test for means of values that are
 * not too skewed. The spread is an estimate itself: ten runs of each side give it to about +-25 %.
 *
 * No I/O, no allocation; any thread.
 */
#ifndef KVMPROF_PROFILE_COMPARE_STATS_POWER_H
#define KVMPROF_PROFILE_COMPARE_STATS_POWER_H

#include "profile/compare/stats/verdict.h"

#define STATS_POWER 0.90 /* the default of reports */

/* The estimated noise of a metric, in the unit of the values. */
struct stats_spread {
	double base; /* mean of base, for relative rules */
	/*
	 * Standard deviation between runs of one side; if paired, that of a pair's difference
	 * divided by sqrt(2). Accounts for the scaling of head by relative rules to first order.
	 */
	double sd;
	double df; /* degrees of freedom of sd */
	bool paired;
};

/*
 * Estimates the spread of these values (d->nbase and d->nhead), by pairs if d->pairs. Returns 0, or
 * -EINVAL for values that are not finite, and for less than three runs in total (two pairs).
 */
int stats_spread_of(const struct stats_design *d, const double *base, const double *head,
		    struct stats_spread *out, struct err *e);

/*
 * Returns the smallest change, in the rule's unit, that nbase and nhead runs detect with
 * probability `power` (0 to 1); INFINITY if these are too few runs to detect any (no p reaches
 * alpha).
 */
double stats_detectable(const struct stats_spread *s, const struct stats_rule *r,
			unsigned int nbase, unsigned int nhead, double power);

/*
 * Returns the number of runs of each side that settles the rule, given the spread: unchanged code
 * passes, and a change of twice the rule's min_effect fails, each with probability `power` (0 to
 * 1). Returns 0 if that is more than STATS_MAX_RUNS.
 */
unsigned int stats_runs_needed(const struct stats_spread *s, const struct stats_rule *r,
			       double power);

/* -- distributions, for these and for tests ---------------------------------------------------- */

/* Returns P(Z <= z) of the standard normal distribution. */
double stats_normal_cdf(double z);
/* Returns P(T <= t) of Student's t distribution with df degrees of freedom, above 0. */
double stats_t_cdf(double t, double df);
/*
 * Returns its inverse for 0 < p < 1; beyond 1e6 degrees of freedom that of the normal distribution.
 */
double stats_t_quantile(double p, double df);

#endif

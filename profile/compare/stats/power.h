/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * power: which change would these runs have shown?
 *
 * From the spread between runs as observed, the power of `fail` (verdict.h) follows from the
 * noncentral t distribution, which the permutation test has for means of not too skewed values.
 * The spread is an estimate too: of ten runs a side it is known to about +-25 %.
 *
 * Pure functions; any thread.
 */
#ifndef KVMPROF_PROFILE_COMPARE_STATS_POWER_H
#define KVMPROF_PROFILE_COMPARE_STATS_POWER_H

#include "profile/compare/stats/verdict.h"

#define STATS_POWER 0.90 /* the usual question */

/* The noise of a metric, as far as it is known. All members have the unit of the values. */
struct stats_spread {
	double base; /* mean of base, for relative rules */
	/*
	 * Between runs of one side; if paired, that of a pair's difference over sqrt(2). Relative
	 * rules scale head back, which these numbers have in them to the first order.
	 */
	double sd;
	double df; /* degrees of freedom of sd */
	bool paired;
};

/*
 * -EINVAL for values that are no numbers, and for less than three runs in all (two pairs).
 * The design tells whether pairs are compared.
 */
int stats_spread_of(const struct stats_design *d, const double *base, const double *head,
		    struct stats_spread *out, struct err *e);

/*
 * The smallest change, in the rule's unit, that is seen with probability power (0 to 1) by n runs
 * a side: "with these 10 runs a change of 0.4 points would be seen 90 % of the time". INFINITY if
 * no change can be seen with so few runs (no p reaches alpha).
 */
double stats_detectable(const struct stats_spread *s, const struct stats_rule *r,
			unsigned int nbase, unsigned int nhead, double power);

/*
 * Returns how many runs a side would settle the rule, given the spread: unchanged code passes, and a change of twice
 * the rule's min_effect fails, each with probability power (0 to 1). 0: more than STATS_MAX_RUNS.
 */
unsigned int stats_suffice(const struct stats_spread *s, const struct stats_rule *r, double power);

/* -- distributions, for these and for tests ---------------------------------------------------- */

double stats_normal_cdf(double z);
double stats_t_cdf(double t, double df);
double stats_t_quantile(double p, double df); /* 0 < p < 1; beyond 1e6 degrees the normal one */

#endif

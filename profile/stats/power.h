/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gatestats_power: which change would have been seen, and what is needed to see one?
 *
 * From the spread between runs as observed, the power of `fail` (gatestats.h) follows from the
 * noncentral t distribution, which the permutation test has for means of not too skewed values;
 * gate_power_resample() does without by simulating gates from the runs themselves. The spread is
 * an estimate too: of ten runs a side it is known to about +-25 %.
 *
 * Pure functions; any thread.
 */
#ifndef KVMPROF_PROFILE_STATS_POWER_H
#define KVMPROF_PROFILE_STATS_POWER_H

#include "profile/stats/verdict.h"

#define GATE_POWER 0.90	       /* the usual question */
#define GATE_RUNS_LIMIT 10000u /* no answer is larger */

/* What is known of a metric's noise. All in one unit: that of the values. */
struct gate_spread {
	double base; /* mean of base, for relative rules */
	/*
	 * Between runs of one side; if paired, that of a pair's difference over sqrt(2). Relative
	 * rules scale head back, which these numbers have in them to the first order.
	 */
	double sd;
	double df; /* of sd */
	bool paired;
};

/*
 * -EINVAL for values that are no numbers, and for less than three runs in all (two pairs).
 * The design tells whether pairs are compared.
 */
int gate_spread_of(const struct gate_design *d, const double *base, const double *head,
		   struct gate_spread *out, struct err *e);

/* Probability (0 to 1) of `fail` if the change is `effect`, in the rule's unit, worse > 0. */
double gate_power(const struct gate_spread *s, const struct gate_rule *r, unsigned int nbase,
		  unsigned int nhead, double effect);

/*
 * The smallest change, in the rule's unit, that is seen with probability power (0 to 1) by n runs
 * a side: "with these 10 runs a change of 0.4 points would be seen 90 % of the time". INFINITY if
 * no change can be seen with so few runs (no p reaches alpha).
 */
double gate_detectable(const struct gate_spread *s, const struct gate_rule *r, unsigned int nbase,
		       unsigned int nhead, double power);

/*
 * Runs a side that see a change of `effect` with that probability. 0 if there is no such number
 * up to GATE_RUNS_LIMIT; also when effect < min_effect: then more runs do not help.
 */
unsigned int gate_runs_needed(const struct gate_spread *s, const struct gate_rule *r, double effect,
			      double power);

/*
 * Runs a side that give `pass` with that probability if nothing changed (the other half of being
 * conclusive). 0 as above.
 */
unsigned int gate_runs_to_pass(const struct gate_spread *s, const struct gate_rule *r,
			       double power);

/*
 * As gate_power(), by `simulations` gates whose runs are drawn from the given ones (each side
 * about its own mean, widened by sqrt(n/(n-1))) with `effect` added to head. Pairs stay together.
 * nbase = nhead for pairs. -EINVAL, -ENOMEM. *out: 0 to 1.
 */
int gate_power_resample(const struct gate_design *d, const struct gate_rule *r, const double *base,
			const double *head, unsigned int nbase, unsigned int nhead, double effect,
			unsigned int simulations, uint64_t seed, double *out, struct err *e);

/* -- samples within a run ---------------------------------------------------------------------- */

/*
 * A share p of m samples has variance tau^2 + deff p (1 - p) / m between runs: tau^2 is what runs
 * really differ by, deff (design effect) is 1 for independent samples.
 */
struct gate_shares {
	double p;    /* share, 0 to 1 */
	double tau;  /* >= 0 */
	double deff; /* >= 1 */
	double df;   /* of the variance that was seen */
};

/*
 * Splits the variance that n shares of samples[i] samples each show, deff assumed (>= 1). tau is 0
 * when counting alone explains it. -EINVAL for n < 2, shares out of 0..1, no samples.
 */
int gate_shares_of(const double *share, const double *samples, unsigned int n, double deff,
		   struct gate_shares *out, struct err *e);

/*
 * Samples per run so that n runs a side see a move of `points` (0.2: from 5 % to 5.2 %) with that
 * probability at the rule's alpha. INFINITY when no number of samples does, as tau alone is
 * too large: then *runs (may be NULL) is how many runs a side would at unlimited samples
 * (0: none). Otherwise *runs = n. The rule's min_effect counts if it is in points and below
 * `points`; else half of `points` is taken, as a move of just the minimum is reached half of the
 * time only.
 */
double gate_samples_needed(const struct gate_shares *s, const struct gate_rule *r, unsigned int n,
			   double points, double power, unsigned int *runs);

/*
 * The move in points that n runs a side of m samples see with that probability; with the rule's
 * min_effect if that is in points.
 */
double gate_points_detectable(const struct gate_shares *s, const struct gate_rule *r,
			      unsigned int n, double m, double power);

/* -- distributions, for these and for tests ---------------------------------------------------- */

double gate_normal_cdf(double z);
double gate_normal_quantile(double p); /* 0 < p < 1 */
double gate_t_cdf(double t, double df);
double gate_t_quantile(double p, double df);
/* Wilson's interval of k of n at confidence (0 to 1). */
void gate_wilson(double k, double n, double confidence, double *lo, double *hi);

#endif

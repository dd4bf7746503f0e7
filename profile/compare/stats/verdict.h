/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * verdict: decides whether a number got worse between base and head, with known error rates.
 *
 * Each run gives one value; the run is the unit of replication. Let theta be the difference of head
 * and base (of means, or of a quantile) in the rule's unit, with the sign such that positive is
 * worse; D is the rule's min_effect.
 *
 *   fail          theta <= 0 was rejected at alpha AND the estimate is at least D.
 *                 (strict: theta <= D was rejected at alpha.)
 *                 On identical code this happens in at most alpha of all gates.
 *   pass          theta >= D was rejected at `miss`. A change of D or more passes in at
 *                 most `miss` of all gates.
 *   inconclusive  neither test rejects: these runs do not decide. This is never reported as a pass.
 *
 * Both tests are permutation tests: labels are dealt anew among runs that could have been exchanged
 * (struct stats_design); for theta >= D, head is first moved back by D (scaled by 1 + D if the unit
 * is relative). With STATS_EITHER, `fail` is two-sided and `pass` needs both directions excluded.
 * docs/gate-statistics.md has the reasons and the simulations.
 *
 * No I/O; one seed gives one result. One thread uses a design at a time (scratch memory); several
 * threads may use several designs.
 */
#ifndef KVMPROF_PROFILE_COMPARE_STATS_VERDICT_H
#define KVMPROF_PROFILE_COMPARE_STATS_VERDICT_H

#include "base/err.h"
#include "profile/compare/stats/design.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STATS_MISS 0.10 /* defaults of struct stats_rule */
#define STATS_CONFIDENCE 0.95

/* -- the rule ---------------------------------------------------------------------------------- */

enum stats_worse { STATS_HIGHER, STATS_LOWER, STATS_EITHER };
enum stats_unit {
	STATS_ABSOLUTE, /* the unit of the values */
	STATS_RELATIVE, /* parts of base: 0.02 is 2 %; values must not be negative, base not 0 */
	STATS_POINTS,	/* percentage points of values that are shares (0 to 1): 0.2 is 0.002 */
};
enum stats_location { STATS_MEAN, STATS_QUANTILE };

struct stats_rule {
	enum stats_worse worse;
	enum stats_unit unit;
	double min_effect; /* D, in `unit`: > 0 */
	double alpha;	   /* probability of a false fail: 0 to 0.5; 0: STATS_ALPHA */
	double miss;	   /* probability of a false pass: 0 to 0.5; 0: STATS_MISS */
	double confidence; /* level of the interval: 0.5 to 0.999; 0: STATS_CONFIDENCE; < 0: none */
	bool strict;	   /* fail only if theta <= D is rejected */
	enum stats_location location;
	double quantile; /* for STATS_QUANTILE: 0 to 1; 0.5 is the median */
};

/*
 * Converts an effect from the rule's unit to a difference of values, for a base with the mean
 * `base`.
 */
double stats_in_values(const struct stats_rule *r, double base, double effect);
/* Returns the difference of head and base in the rule's unit. */
double stats_effect(const struct stats_rule *r, double base, double head);

/* -- the result -------------------------------------------------------------------------------- */

enum stats_verdict { STATS_PASS, STATS_FAIL, STATS_INCONCLUSIVE };

/* The reason of a verdict; stats_reason_text() returns a sentence for each. */
enum stats_reason {
	STATS_WORSE,	/* fail */
	STATS_EXCLUDED, /* pass: a change of D is excluded */
	STATS_NOISE,	/* inconclusive: too noisy or too few runs, see power.h */
	STATS_SMALL, /* inconclusive: significantly worse, but D is neither reached nor excluded */
	STATS_TOO_FEW,	/* inconclusive: too few runs for p to reach alpha, or one run of a side */
	STATS_NO_BASE,	/* inconclusive: relative to a base of 0, or with negative values */
	STATS_DRIFTING, /* inconclusive: not interleaved, and a drift or dependence was detected */
	STATS_TOO_MANY, /* inconclusive: fails alone, but not after correction (stats_adjust) */
	STATS_REASON_MAX
};

/* Remarks that a report should add to the verdict. */
#define STATS_IMPROVED 0x01u   /* better, significant at alpha, by at least D */
#define STATS_CHANGED 0x02u    /* significant, but smaller than D */
#define STATS_CONFOUNDED 0x04u /* see stats_design.confounded */
#define STATS_OUTLIERS 0x08u   /* mean and median shift disagree in sign while significant */

struct stats_result {
	enum stats_verdict verdict;
	enum stats_reason reason;
	unsigned int flags; /* STATS_IMPROVED... */
	double base, head;  /* mean or quantile of each side, in the unit of the values */
	double diff;	    /* head - base, in the unit of the values */
	double effect;	    /* the same in the rule's unit; NaN for STATS_NO_BASE */
	double lo, hi; /* interval of effect at the rule's confidence; NaN if a side has one run */
	double relative;       /* diff / base; NaN if base is not positive */
	double hodges_lehmann; /* median of all head - base, in the unit of the values */
	double cliff;	       /* P(head > base) - P(head < base): -1 to 1 */
	double p_fail;	       /* p-value of theta <= 0 (strict: <= D) */
	double p_pass;	       /* p-value of theta >= D */
	double p_two;	       /* two-sided p-value of theta = 0 */
	double p_least;	       /* smallest possible p_fail */
	double q;	       /* p_fail after stats_adjust(), else p_fail */
};

/*
 * Compares d->nbase values with d->nhead values, in the order of the layout's positions. Returns 0;
 * -EINVAL for a value that is not finite or a rule that is out of range; or -ENOMEM.
 */
int stats_compare(struct stats_design *d, const struct stats_rule *r, const double *base,
		  const double *head, struct stats_result *out, struct err *e);

/* A test of whether two means differ, of any size; for lists without a rule. */
struct stats_shift {
	double base, head, diff; /* means, and head - base */
	bool tested;   /* both sides have two runs or more; else p is 1, and lo and hi are 0 */
	double p;      /* two-sided, never 0 */
	double lo, hi; /* interval of diff, at STATS_CONFIDENCE */
};

/* Tests the difference of the means of d->nbase and d->nhead finite values. */
void stats_compare_means(const struct stats_design *d, const double *base, const double *head,
			 struct stats_shift *out);

/* Returns the mean of n values; 0 for n = 0. */
double stats_mean(const double *v, size_t n);
/* Returns the sum of squares about the mean over n - 1; 0 for n < 2. */
double stats_variance(const double *v, size_t n);

/*
 * Stores Benjamini and Hochberg's q of n p-values; p and q may be the same array. Returns 0 or
 * -ENOMEM.
 */
int stats_fdr(const double *p, size_t n, double *q);

enum stats_family {
	STATS_FDR,  /* Benjamini and Hochberg: on average at most alpha of the fails are false */
	STATS_HOLM, /* at most alpha of all gates have any false fail; for a gate's set of rules */
};

/*
 * Sets q of n results that belong together and corrects their verdicts: a fail with q > alpha
 * becomes inconclusive (STATS_TOO_MANY). The caller must choose members independently of the
 * difference, e.g. by the mean over all runs of both sides. On identical code both families limit
 * the probability of any false fail among the n to alpha. Results that could not be tested
 * (STATS_NO_BASE, STATS_TOO_FEW with p 1) count with p = 1. Returns 0 or -ENOMEM.
 */
int stats_adjust(struct stats_result *const *results, size_t n, double alpha,
		 enum stats_family family);

/* Returns a sentence without a full stop, a constant. */
const char *stats_reason_text(enum stats_reason r);

#endif

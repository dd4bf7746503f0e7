/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * verdict: did one number get worse between base and head, with which error?
 *
 * A value is what one run gave; the run is the unit of replication. Let theta be how much
 * larger head's values are than base's (difference of means, or of a quantile), with the
 * sign turned so that positive is worse, in the rule's unit; D is the rule's min_effect.
 *
 *   fail          theta <= 0 was rejected at alpha AND the estimate is at least D.
 *                 (strict: theta <= D was rejected at alpha.)
 *                 On identical code this happens in at most alpha of all gates.
 *   pass          theta >= D was rejected at `miss`. A change of D or more passes in at
 *                 most `miss` of all gates.
 *   inconclusive  neither: these runs cannot tell. Never silently a pass.
 *
 * Both tests are permutation tests: labels are dealt anew among runs that could have been
 * dealt the other way (struct stats_design), for theta >= D after moving head back by D (scaling
 * by 1 + D where the unit is relative). With `worse` either, `fail` is two-sided and `pass` needs
 * both sides excluded. docs/gate-statistics.md has the reasons and the simulations.
 *
 * Pure functions, no I/O; one seed gives one result. A design may be used from one thread at a
 * time (scratch memory), several designs from several threads.
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
	STATS_ABSOLUTE, /* as values */
	STATS_RELATIVE, /* parts of base: 0.02 is 2 %; values must not be negative, base not 0 */
	STATS_POINTS,	/* values are shares from 0 to 1; 0.2 is 0.002 of them */
};
enum stats_location { STATS_MEAN, STATS_QUANTILE };

struct stats_rule {
	enum stats_worse worse;
	enum stats_unit unit;
	double min_effect; /* D, in `unit`: > 0 */
	double alpha;	   /* probability of a false fail: 0 to 0.5; 0: STATS_ALPHA */
	double miss;	   /* probability of a false pass: 0 to 0.5; 0: STATS_MISS */
	double confidence; /* the interval's: 0.5 to 0.999; 0: STATS_CONFIDENCE; < 0: none */
	bool strict;	   /* fail only if more than D is certain */
	enum stats_location location;
	double quantile; /* for STATS_QUANTILE: 0 to 1; 0.5 is the median */
};

/* Returns an effect in the rule's unit as a difference of values, where base has the mean `base`. */
double stats_in_values(const struct stats_rule *r, double base, double effect);
/* Returns the effect, in the rule's unit, that head has against base. */
double stats_effect(const struct stats_rule *r, double base, double head);

/* -- the result -------------------------------------------------------------------------------- */

enum stats_verdict { STATS_PASS, STATS_FAIL, STATS_INCONCLUSIVE };

/* Why, for reports; stats_reason_text() has a sentence for each. */
enum stats_reason {
	STATS_WORSE,	/* fail */
	STATS_EXCLUDED, /* pass: a change of D is excluded */
	STATS_NOISE,	/* inconclusive: too noisy or too few runs, see power.h */
	STATS_SMALL,	/* inconclusive: worse for certain, but D neither reached nor excluded */
	STATS_TOO_FEW,	/* inconclusive: so few runs that no p can reach alpha, or one run a side */
	STATS_NO_BASE,	/* inconclusive: relative to a base of 0, or with negative values */
	STATS_DRIFTING, /* inconclusive: not interleaved, and a drift or dependence was seen */
	STATS_TOO_MANY, /* inconclusive: alone it would fail, not among so many (stats_adjust) */
	STATS_REASON_MAX
};

/* Notes that a report should add to the verdict. */
#define STATS_IMPROVED 0x01u   /* better, significant at alpha, by at least D */
#define STATS_CHANGED 0x02u    /* significant, but smaller than D */
#define STATS_CONFOUNDED 0x04u /* the design is; see struct stats_design */
#define STATS_OUTLIERS 0x08u   /* mean and median shift disagree in sign while significant */

struct stats_result {
	enum stats_verdict verdict;
	enum stats_reason reason;
	unsigned int flags; /* STATS_IMPROVED... */
	double base, head;  /* location of each side, as values */
	double diff;	    /* head - base, as values */
	double effect;	    /* the same in the rule's unit; NaN for STATS_NO_BASE */
	double lo, hi;	 /* interval of effect at the rule's confidence; NaN with one run a side */
	double relative; /* diff / base; NaN if base is not positive */
	double hodges_lehmann; /* median of all head - base, as values */
	double cliff;	       /* P(head > base) - P(head < base): -1 to 1 */
	double p_fail;	       /* p-value of theta <= 0 (strict: <= D) */
	double p_pass;	       /* p-value of theta >= D */
	double p_two;	       /* two-sided, of no difference at all */
	double p_least;	       /* p_fail cannot be lower */
	double q;	       /* p_fail after stats_adjust(), else p_fail */
};

/*
 * base: d->nbase values, head: d->nhead, in the order of the layout's places. -EINVAL for a value
 * that is no number or infinite, and for a rule that is out of range; -ENOMEM. *out is
 * written on success only.
 */
int stats_compare(struct stats_design *d, const struct stats_rule *r, const double *base,
		  const double *head, struct stats_result *out, struct err *e);

/* Is a mean another one, whatever size matters? For lists of what differs, which no rule is about. */
struct stats_shift {
	double base, head, diff; /* means, and head - base */
	bool tested;		 /* both sides have two runs or more; else p is 1 */
	double p;		 /* two-sided, never 0 */
	double lo, hi;		 /* interval of diff, at STATS_CONFIDENCE */
};

/* As stats_compare(), of finite values. Not from several threads at once for one design. */
void stats_compare_means(const struct stats_design *d, const double *base, const double *head,
			 struct stats_shift *out);

double stats_mean(const double *v, size_t n);
/* Returns the sum of squares about the mean over n - 1; 0 for n < 2. */
double stats_variance(const double *v, size_t n);

/* Benjamini and Hochberg's q of n p-values; p and q may be the same array. -ENOMEM. */
int stats_fdr(const double *p, size_t n, double *q);

enum stats_family {
	STATS_FDR,  /* Benjamini and Hochberg: of the fails, at most alpha are false, on average */
	STATS_HOLM, /* at most alpha of all gates have any false fail; for a gate's set of rules */
};

/*
 * Sets q of n results that belong together and settles verdicts again: what fails must also have
 * q <= alpha, else it becomes inconclusive (STATS_TOO_MANY). Choose members without looking
 * at the difference: by the mean over all runs of both sides, say. On identical code both families
 * keep any false fail among the n to alpha. Results that could not be tested (STATS_NO_BASE,
 * STATS_TOO_FEW with p 1) take part with p = 1. -ENOMEM.
 */
int stats_adjust(struct stats_result *const *results, size_t n, double alpha,
		 enum stats_family family);

/* A sentence without a full stop. Static. */
const char *stats_reason_text(enum stats_reason r);

#endif

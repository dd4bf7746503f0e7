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
 * dealt the other way (struct gate_design), for theta >= D after moving head back by D (scaling
 * by 1 + D where the unit is relative). With `worse` either, `fail` is two-sided and `pass` needs
 * both sides excluded. docs/gate-statistics.md has the reasons and the simulations.
 *
 * Pure functions, no I/O; one seed gives one result. A design may be used from one thread at a
 * time (scratch memory), several designs from several threads.
 */
#ifndef KVMPROF_PROFILE_COMPARE_STATS_VERDICT_H
#define KVMPROF_PROFILE_COMPARE_STATS_VERDICT_H

#include "base/err.h"
#include "profile/compare/stats/runs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GATE_MAX_RUNS RUNSTATS_MAX_RUNS /* a side */
#define GATE_ALPHA 0.01			/* defaults of struct gate_rule */
#define GATE_MISS 0.10
#define GATE_CONFIDENCE 0.95

/* -- the design: which deals are possible ------------------------------------------------------ */

enum gate_pairing {
	GATE_AUTO,    /* blocks where the order is known and interleaved, else free */
	GATE_FREE,    /* any run could have been on either side: right without drift only */
	GATE_BLOCKED, /* within blocks of neighbours in time only; -EINVAL without an order */
};

struct gate_layout {
	unsigned int nbase, nhead; /* 1 to GATE_MAX_RUNS */
	/*
	 * The place of each run in the order of running (any increasing numbers, a start time will
	 * do; all distinct): base_at[i] is of base value i. Both NULL: unknown.
	 */
	const uint64_t *base_at, *head_at;
	enum gate_pairing pairing;
	/*
	 * The alpha that the design must be able to reach: blocks are the smallest in which both
	 * sides ran (A/B pairs, if the order has such), joined with their neighbours until the
	 * smallest possible one-sided p is at most this. Depends on the order only, never on
	 * values. 0: GATE_ALPHA.
	 */
	double alpha;
	/*
	 * Autocorrelation: glue consecutive blocks of one base and one head run, so many of them
	 * exchange their labels together (block permutation). 0 and 1: not. Needs pairs.
	 */
	unsigned int glue;
	unsigned int resamples; /* 0: RUNSTATS_RESAMPLES; at most RUNSTATS_RESAMPLES_MAX */
	uint64_t seed;		/* 0: RUNSTATS_SEED */
};

struct gate_design {
	struct runstats deals;
	unsigned int nbase, nhead;
	unsigned int nblocks; /* within which runs are dealt; 1: free */
	bool pairs;	      /* every block is one base and one head run */
	bool ordered;	      /* the order is known */
	bool one_order;	      /* pairs, and in each the same side went first */
	/*
	 * The order is known and the sides take turns so rarely (less than three blocks) that a
	 * drift of the host looks like a change: gate_compare() then never says fail or pass if
	 * the runs of one side drift or depend on each other (GATE_DRIFT, GATE_AUTOCORRELATED).
	 */
	bool confounded;
	uint16_t *time;	 /* nbase + nhead run numbers (base first) in order of running; or NULL */
	uint16_t *block; /* the block of each run number, or NULL when free */
	double dip_limit[3]; /* of base, head, both: dips above are multimodal; 0: not known yet */
};

/* *layout is not kept. -EINVAL (counts, equal places, blocks impossible), -ENOMEM. */
int gate_design_init(struct gate_design *d, const struct gate_layout *layout, struct err *e);
void gate_design_deinit(struct gate_design *d);

/*
 * The order in which to run npairs pairs: head_first[i] tells which run of pair i goes first, a
 * fair coin for each, so that the paired test repeats what really was drawn: then no drift and no
 * autocorrelation can raise its error.
 */
void gate_order(unsigned int npairs, uint64_t seed, bool *head_first);

/* -- the rule ---------------------------------------------------------------------------------- */

enum gate_worse { GATE_HIGHER, GATE_LOWER, GATE_EITHER };
enum gate_unit {
	GATE_ABSOLUTE, /* as values */
	GATE_RELATIVE, /* of base: 0.02 is 2 %; values must not be negative, base not 0 */
	GATE_POINTS,   /* values are shares from 0 to 1; 0.2 is 0.002 of them */
};
enum gate_location { GATE_MEAN, GATE_QUANTILE };

struct gate_rule {
	enum gate_worse worse;
	enum gate_unit unit;
	double min_effect; /* D, in `unit`: > 0 */
	double alpha;	   /* of a false fail: 0 to 0.5; 0: GATE_ALPHA */
	double miss;	   /* of a false pass: 0 to 0.5; 0: GATE_MISS */
	double confidence; /* of the interval: 0.5 to 0.999; 0: GATE_CONFIDENCE; < 0: none */
	bool strict;	   /* fail only if more than D is certain */
	enum gate_location location;
	double quantile; /* for GATE_QUANTILE: 0 to 1; 0.5 is the median */
};

/* -EINVAL for what is out of range (also NaN), with the reason. */
int gate_rule_check(const struct gate_rule *r, struct err *e);

/* -- the result -------------------------------------------------------------------------------- */

enum gate_verdict { GATE_PASS, GATE_FAIL, GATE_INCONCLUSIVE };

/* Why, for reports; gate_reason_text() has a sentence for each. */
enum gate_reason {
	GATE_WORSE,    /* fail */
	GATE_EXCLUDED, /* pass: a change of D is excluded */
	GATE_NOISE,    /* inconclusive: too noisy or too few runs, see power.h */
	GATE_SMALL,    /* inconclusive: worse for certain, but D neither reached nor excluded */
	GATE_TOO_FEW,  /* inconclusive: so few runs that no p can reach alpha, or one run a side */
	GATE_NO_BASE,  /* inconclusive: relative to a base of 0, or with negative values */
	GATE_DRIFTING, /* inconclusive: not interleaved, and a drift or dependence was seen */
	GATE_TOO_MANY, /* inconclusive: alone it would fail, not among so many (gate_adjust) */
	GATE_REASONS
};

/* What a report should say beside the verdict. */
#define GATE_IMPROVED 0x01u	  /* better, significant at alpha, by at least D */
#define GATE_CHANGED 0x02u	  /* significant, but smaller than D */
#define GATE_DRIFT 0x04u	  /* values follow the order of running (p < 0.01) */
#define GATE_AUTOCORRELATED 0x08u /* neighbours in time resemble each other (p < 0.01) */
#define GATE_CONFOUNDED 0x10u	  /* the design is; see struct gate_design */
#define GATE_MULTIMODAL 0x20u	  /* see modes.h; means mislead */
#define GATE_OUTLIERS 0x40u	  /* mean and median shift disagree in sign while significant */

struct gate_result {
	enum gate_verdict verdict;
	enum gate_reason reason;
	unsigned int flags; /* GATE_IMPROVED... */
	double base, head;  /* location of each side, as values */
	double diff;	    /* head - base, as values */
	double effect;	    /* the same in the rule's unit; NaN for GATE_NO_BASE */
	double lo, hi;	 /* interval of effect at the rule's confidence; NaN with one run a side */
	double relative; /* diff / base; NaN if base is not positive */
	double hodges_lehmann; /* median of all head - base, as values */
	double cliff;	       /* P(head > base) - P(head < base): -1 to 1 */
	double p_fail;	       /* of theta <= 0 (strict: <= D) */
	double p_pass;	       /* of theta >= D */
	double p_two;	       /* two-sided, of no difference at all */
	double p_least;	       /* p_fail cannot be lower */
	double q;	       /* p_fail after gate_adjust(), else p_fail */
};

/*
 * base: d->nbase values, head: d->nhead, in the order of the layout's places. -EINVAL for a value
 * that is no number or infinite, and for what gate_rule_check() refuses; -ENOMEM. *out is
 * written on success only.
 */
int gate_compare(struct gate_design *d, const struct gate_rule *r, const double *base,
		 const double *head, struct gate_result *out, struct err *e);

enum gate_family {
	GATE_FDR,  /* Benjamini and Hochberg: of the fails, at most alpha are false, on average */
	GATE_HOLM, /* at most alpha of all gates have any false fail; for a gate's set of rules */
};

/*
 * Sets q of n results that belong together and settles verdicts again: what fails must also have
 * q <= alpha, else it becomes inconclusive (GATE_TOO_MANY). Choose members without looking
 * at the difference: by the mean over all runs of both sides, say. On identical code both families
 * keep any false fail among the n to alpha. Results that could not be tested (GATE_NO_BASE,
 * GATE_TOO_FEW with p 1) take part with p = 1. -ENOMEM.
 */
int gate_adjust(struct gate_result *const *results, size_t n, double alpha,
		enum gate_family family);

/* A sentence without a full stop. Static. */
const char *gate_reason_text(enum gate_reason r);

#endif

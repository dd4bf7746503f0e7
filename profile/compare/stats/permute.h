/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * permute: the permutation test of the gate, and the intervals beside it.
 *
 * For files of this room; callers use verdict.h. All deals of a design are equally likely if
 * nothing differs; p is the fraction of them that is as extreme as what was seen, which is one
 * of them (Phipson and Smyth 2010: never 0).
 */
#ifndef KVMPROF_PROFILE_COMPARE_STATS_PERMUTE_H
#define KVMPROF_PROFILE_COMPARE_STATS_PERMUTE_H

#include "profile/compare/stats/verdict.h"

struct gate_p {
	double up;   /* that head is so much larger */
	double down; /* that it is so much smaller */
	double two;  /* that it differs so much */
};

/*
 * v: base, then head values. Means: of their difference; with unequal sides of Welch's t, as else
 * a difference of spread is taken for one of means. Quantiles: of their difference. Both sides
 * have two runs or more.
 */
void gate_permute(const struct gate_design *d, const double *v, enum gate_location location,
		  double quantile, struct gate_p *out);

/*
 * Runs of one side that follow each other in time: does their level drift, and do neighbours
 * resemble each other? GATE_DRIFT and GATE_AUTOCORRELATED for a p below 0.01 each, by shuffling
 * within sides. Nothing without an order or with less than 8 runs.
 */
unsigned int gate_order_flags(const struct gate_design *d, const double *base, const double *head);

/* Takes the straight line in the order of running, fitted within sides, out of both. d->ordered. */
void gate_detrend(const struct gate_design *d, double *base, double *head);

/* Linear between order statistics (type 7 of Hyndman and Fan). v is sorted; n >= 1. */
double gate_quantile_sorted(const double *v, unsigned int n, double q);
double gate_mean(const double *v, unsigned int n);
/* Sum of squares about the mean over n - 1; 0 for n < 2. */
double gate_variance(const double *v, unsigned int n);
int gate_compare_doubles(const void *a, const void *b); /* for qsort() */
/* The k-th smallest (0 to n - 1) of v, which is reordered: nothing before it is larger. */
double gate_select(double *v, size_t n, size_t k);

/*
 * How an interval of the difference (relative: of the ratio less one) is found. GATE_I_SYMMETRIC
 * is what gate_compare() uses for means; docs/gate-statistics.md compares them.
 */
enum gate_interval {
	GATE_I_PERCENTILE, /* Efron's percentile; the one for quantiles */
	GATE_I_BCA,	   /* Efron's bias-corrected and accelerated */
	GATE_I_T,	   /* percentile-t (studentized), equal tails */
	GATE_I_SYMMETRIC,  /* percentile-t of |t| (Hall 1988) */
	GATE_I_WELCH,	   /* no bootstrap: Welch's, or the paired t */
};

/* Two sides, of which an interval is wanted; all borrowed. */
struct gate_sides {
	const struct gate_design *design; /* its scratch is used */
	const double *base, *head;	  /* design->nbase, nhead values */
	bool relative;			  /* of the ratio less one, not of the difference */
	double confidence;		  /* 0 to 1 */
};

/*
 * Of means, for both sides with two runs or more, relative only for positive means. Pairs of the
 * design stay together. NaN where no interval exists.
 */
void gate_interval_means(const struct gate_sides *s, enum gate_interval how, double *lo,
			 double *hi);
/* Of quantiles, percentile. NaN where a relative one has no base. */
void gate_interval_quantiles(const struct gate_sides *s, double quantile, double *lo, double *hi);

#endif

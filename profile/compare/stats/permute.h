/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * permute: the permutation test of the gate, and the sums that it takes.
 *
 * For files of this room; callers use verdict.h. All deals of a design are equally likely if
 * nothing differs; p is the fraction of them that is as extreme as what was seen, which is one
 * of them (Phipson and Smyth 2010: never 0).
 */
#ifndef KVMPROF_PROFILE_COMPARE_STATS_PERMUTE_H
#define KVMPROF_PROFILE_COMPARE_STATS_PERMUTE_H

#include "profile/compare/stats/verdict.h"

struct stats_p {
	double up;   /* that head is so much larger */
	double down; /* that it is so much smaller */
	double two;  /* that it differs so much */
};

/*
 * v: base, then head values. Means: of their difference; with unequal sides of Welch's t, as else
 * a difference of spread is taken for one of means. Quantiles: of their difference. Both sides
 * have two runs or more.
 */
void stats_permute(const struct stats_design *d, const double *v, enum stats_location location,
		   double quantile, struct stats_p *out);

/* Linear between order statistics (type 7 of Hyndman and Fan). v is sorted; n >= 1. */
double stats_quantile_sorted(const double *v, unsigned int n, double q);
int stats_compare_doubles(const void *a, const void *b); /* for qsort() */
/* The k-th smallest (0 to n - 1) of v, which is reordered: nothing before it is larger. */
double stats_select(double *v, size_t n, size_t k);

#endif

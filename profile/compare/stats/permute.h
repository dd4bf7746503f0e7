/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * permute: the permutation test of the gate, and its order statistics.
 *
 * Private to this folder; others use verdict.h. All deals of a design are equally likely if the
 * sides do not differ; p is the fraction of deals that are as extreme as the observed one, which is
 * one of them (Phipson and Smyth 2010: never 0). No errors, no allocation; any thread.
 */
#ifndef KVMPROF_PROFILE_COMPARE_STATS_PERMUTE_H
#define KVMPROF_PROFILE_COMPARE_STATS_PERMUTE_H

#include "profile/compare/stats/verdict.h"

/* p-values, above 0 and at most 1. */
struct stats_p {
	double up;   /* one-sided: head is larger */
	double down; /* one-sided: head is smaller */
	double two;  /* two-sided */
};

/*
 * Tests the difference of means or of quantiles of v, which has the values of base, then those of
 * head. Both sides have two runs or more. Means of sides with unequal numbers of runs are compared
 * by Welch's t, because otherwise a difference of spread would look like one of means.
 */
void stats_permute(const struct stats_design *d, const double *v, enum stats_location location,
		   double quantile, struct stats_p *out);

/*
 * Returns the quantile q (0 to 1) of sorted values, linear between order statistics (type 7 of
 * Hyndman and Fan); n is 1 or more.
 */
double stats_quantile_sorted(const double *v, unsigned int n, double q);
/* Compares two doubles for qsort(), in ascending order. */
int stats_compare_doubles(const void *a, const void *b);
/*
 * Returns the k-th smallest (0 to n - 1) value of v, and reorders v: no value before index k is
 * larger.
 */
double stats_select(double *v, size_t n, size_t k);

#endif

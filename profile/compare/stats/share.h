/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * share: how far a share of samples may be off, as samples are a matter of chance.
 *
 * The Wilson score interval (E. B. Wilson, "Probable Inference, the Law of
 * Succession, and Statistical Inference", JASA 22, 1927), for 95 %. Samples of
 * unequal weight count as Kish's effective number of equal ones (L. Kish, "Survey
 * Sampling", 1965): the square of the sum over the sum of the squares.
 *
 * It covers the noise of sampling within one run and nothing else: neither that
 * the next run would differ, nor a profiler's bias, nor samples that were lost.
 */
#ifndef KVMPROF_PROFILE_COMPARE_STATS_SHARE_H
#define KVMPROF_PROFILE_COMPARE_STATS_SHARE_H

struct share_interval {
	double low, high; /* 0 to 1 */
};

/* 0 without samples. */
double share_effective(double sum, double sum_of_squares);

/* share: 0 to 1, of n samples. Nothing is known from none: 0 to 1. */
struct share_interval share_wilson95(double share, double n);

/*
 * Returns half the width of the 95 % interval of the difference of two shares (0 to 1) of na and
 * nb samples, as if samples were independent. They are not quite, and runs differ among themselves
 * as well: the truth is wider.
 */
double share_noise(double share_a, double na, double share_b, double nb);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * share: computes the confidence interval of a share of samples.
 *
 * The Wilson score interval (E. B. Wilson, "Probable Inference, the Law of Succession, and
 * Statistical Inference", JASA 22, 1927), for 95 %. Samples of unequal weight count as Kish's
 * effective number of equal ones (L. Kish, "Survey Sampling", 1965): the square of the sum over the
 * sum of the squares.
 *
 * It covers only the noise of sampling within one run: neither differences between runs, nor a
 * profiler's bias, nor lost samples. No errors; any thread.
 */
#ifndef KVMPROF_PROFILE_COMPARE_STATS_SHARE_H
#define KVMPROF_PROFILE_COMPARE_STATS_SHARE_H

struct share_interval {
	double low, high; /* 0 to 1 */
};

/*
 * Returns the effective number of samples, from the sums of their weights and squared weights; 0
 * without samples.
 */
double share_effective(double sum, double sum_of_squares);

/* Returns the 95 % interval of a share (0 to 1) of n samples; 0 to 1 if n is 0. */
struct share_interval share_wilson95(double share, double n);

/*
 * Returns half the width of the 95 % interval of the difference of two shares (0 to 1) of na and nb
 * samples, under the assumption that samples are independent. They are not quite, and runs differ,
 * so that the true interval is wider.
 */
double share_noise(double share_a, double na, double share_b, double nb);

#endif

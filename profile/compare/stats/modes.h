/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * modes: do runs fall into groups (a fast and a slow boot)?
 *
 * Hartigan's dip, the distance to the nearest unimodal distribution, against uniform samples (the
 * least favourable ones, so that unimodal data of any shape is called multimodal in at most alpha
 * of all cases). Of 20 runs a group of four or more can be seen, rarer ones are outliers. A mean
 * of two groups is the value of no run, and moves when only the shares of the groups do: compare
 * quantiles (GATE_QUANTILE) then. The permutation test's error does not depend on any of this.
 *
 * Equal values are spread over half of the smallest distance between two, as a clock's ticks are
 * no modes.
 *
 * Pure; any thread.
 */
#ifndef KVMPROF_PROFILE_COMPARE_STATS_MODES_H
#define KVMPROF_PROFILE_COMPARE_STATS_MODES_H

#include "profile/compare/stats/verdict.h"

#define GATE_MODES_ALPHA 0.01
#define GATE_DIP_DRAWS 1999u
#define GATE_MODES_MIN 8u /* values; with fewer nothing is said */

/* The dip of 1 to 2 * GATE_MAX_RUNS sorted values: from 1/(2n) to 0.25. -EINVAL, -ENOMEM. */
int gate_dip(const double *sorted, size_t n, double *out);

/*
 * Are n values (up to 2 * GATE_MAX_RUNS, finite, of one side, as a shift between sides would look
 * like two modes) multimodal at GATE_MODES_ALPHA? *limit is the least dip of n values that is
 * significant, or 0 when it is to be found; it serves for other values of the same n. -ENOMEM.
 */
int gate_modes_seen(const double *v, unsigned int n, double *limit, bool *out);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gatestats_modes: do runs fall into groups (a fast and a slow boot)?
 *
 * Hartigan's dip, the distance to the nearest unimodal distribution, against uniform samples (the
 * least favourable ones, so that unimodal data of any shape is called multimodal in at most alpha
 * of all cases). Of 20 runs a group of four or more can be seen, rarer ones are outliers. A mean
 * of two groups is the value of no run, and moves when only the shares of the groups do: compare
 * shares (gate_mode_shares()) or quantiles (GATE_QUANTILE) then. The permutation test's error
 * does not depend on any of this.
 *
 * Equal values are spread over half of the smallest distance between two, as a clock's ticks are
 * no modes.
 *
 * Pure; any thread.
 */
#ifndef KVMPROF_PROFILE_STATS_MODES_H
#define KVMPROF_PROFILE_STATS_MODES_H

#include "profile/stats/verdict.h"

#define GATE_MODES_ALPHA 0.01
#define GATE_DIP_DRAWS 1999u
#define GATE_MODES_MIN 8u /* values; with fewer nothing is said */

struct gate_modes {
	bool multimodal;  /* p <= GATE_MODES_ALPHA */
	double dip, p;	  /* p 1 with less than GATE_MODES_MIN values */
	double cut;	  /* between the two main groups; meaningful if multimodal */
	double low, high; /* their means */
	unsigned int nlow, nhigh;
};

/*
 * Of 1 to 2 * GATE_MAX_RUNS values: those of one side, as a shift between sides would look like
 * two modes. -EINVAL, -ENOMEM.
 */
int gate_modes_find(const double *v, size_t n, struct gate_modes *out, struct err *e);

/*
 * Each value becomes 1 if it is above cut, else 0, so that means are shares of the slow group:
 * compare these with a rule in points. out may be v.
 */
void gate_mode_shares(const double *v, size_t n, double cut, double *out);

/* The dip of 1 to 2 * GATE_MAX_RUNS sorted values: from 1/(2n) to 0.25. -EINVAL, -ENOMEM. */
int gate_dip(const double *sorted, size_t n, double *out);

/*
 * gate_modes_find()'s `multimodal` alone, quickly for many metrics: *limit is the least dip of n
 * values that is significant, or 0 when it is to be found. -ENOMEM. Finite values, as above.
 */
int gate_modes_seen(const double *v, unsigned int n, double *limit, bool *out);

#endif

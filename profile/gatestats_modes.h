/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gatestats_modes: do runs fall into groups (a fast and a slow boot)?
 *
 * Hartigan's dip, the distance to the nearest unimodal distribution, against uniform samples
 * (the least favourable ones, so that unimodal data of any shape is called multimodal in at most
 * alpha of all cases). Of 20 runs a group of four or more can be seen, rarer ones are outliers. A mean of
 * two groups is the value of no run, and moves when only the shares of the groups do: compare
 * shares (gate_mode_shares()) or quantiles (GATE_QUANTILE) then. The permutation test's error
 * does not depend on any of this.
 *
 * Pure; any thread.
 */
#ifndef KVMPROF_PROFILE_GATESTATS_MODES_H
#define KVMPROF_PROFILE_GATESTATS_MODES_H

#include "profile/gatestats.h"

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

/* Of any n <= 2 * GATE_MAX_RUNS values. -EINVAL, -ENOMEM. */
int gate_modes_find(const double *v, size_t n, struct gate_modes *out, struct err *e);

/* Of both sides, each about its own median, so that a shift between sides is no mode. */
int gate_modes_sides(const double *base, unsigned int nbase, const double *head, unsigned int nhead,
		     struct gate_modes *base_out, struct gate_modes *head_out, struct err *e);

/*
 * Each value becomes 1 if it is above cut, else 0, so that means are shares of the slow group:
 * compare these with a rule in points. out may be v.
 */
void gate_mode_shares(const double *v, size_t n, double cut, double *out);

/* The dip of n sorted values: from 1/(2n) to 0.25. n >= 1. -ENOMEM. */
int gate_dip(const double *sorted, size_t n, double *out);

#endif

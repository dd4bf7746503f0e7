/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wander: does dependence of each value on the one before explain a series, without any change?
 *
 * The null model is an AR(1) about one level, x[i] = a + phi x[i - 1] + noise, which is a random walk at phi = 1. Its rivals
 * have the same dependence about several levels, about a straight line, or with two spreads of the noise. Each is fitted by
 * least squares, with its changes where they fit best. The statistic is twice the log likelihood ratio of a rival to the null
 * model. Its distribution depends on phi: a random walk looks like levels far more often than independent values do (Zivot
 * and Andrews 1992). So it is that of series which are simulated from the null model as fitted (a parametric bootstrap).
 *
 * For files of this room. Pure; any thread. Each simulated series takes O(n) time.
 */
#ifndef KVMPROF_PROFILE_COMPARE_STATS_WANDER_H
#define KVMPROF_PROFILE_COMPARE_STATS_WANDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wander_fit {
	double phi;    /* phi of the null model; 0 to 1 */
	double levels; /* statistic of several levels, less a penalty for each beyond two; 0 or more */
	double line;	/* statistic of a straight line; 0 or more */
	double spreads; /* statistic of two spreads; 0 or more */
};

struct wander_options {
	size_t least;		/* values in a part; 3 or more */
	double alpha;		/* simulation ends where every p is certain to be above it */
	unsigned int simulated; /* series */
	double resolution;	/* noise of rounding in the values, as a standard deviation */
};

struct wander_p {
	double level;  /* p of several levels or a straight line */
	double spread; /* p of two spreads */
	bool drifts;   /* the straight line explains more than levels do */
};

/* Fits all models to n values, twice o->least or more. room: n values. */
struct wander_fit wander_fit(const double *v, size_t n, const struct wander_options *o,
			     double *room);

/* Returns p of both kinds of change in n values, twice o->least or more. *state is the generator's. room: 2 n values. */
struct wander_p wander_test(const double *v, size_t n, const struct wander_options *o,
			    uint64_t *state, double *room);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * interval: confidence intervals of a difference of means or quantiles, by the bootstrap over runs.
 * No errors, no allocation; one thread uses a design at a time.
 */
#ifndef KVMPROF_PROFILE_COMPARE_STATS_INTERVAL_H
#define KVMPROF_PROFILE_COMPARE_STATS_INTERVAL_H

#include "profile/compare/stats/design.h"

/* The two sides; borrowed during the call. */
struct stats_sides {
	const struct stats_design *design; /* its scratch is used */
	const double *base, *head;	   /* design->nbase, nhead values */
	bool relative; /* the interval is that of head / base - 1; otherwise that of head - base */
	double confidence; /* 0 to 1 */
};

/*
 * Stores the interval of the means in *lo and *hi: percentile-t of |t| (Hall 1988). Both sides have
 * two runs or more; `relative` needs positive means. Pairs of the design stay together. NaN if
 * there is no interval.
 */
void stats_interval_means(const struct stats_sides *s, double *lo, double *hi);
/*
 * Stores the percentile interval of the quantiles (0 to 1) in *lo and *hi; NaN if a relative one
 * has no positive base.
 */
void stats_interval_quantiles(const struct stats_sides *s, double quantile, double *lo, double *hi);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * interval: intervals of a difference of means or quantiles, by the bootstrap over runs.
 */
#ifndef KVMPROF_PROFILE_COMPARE_STATS_INTERVAL_H
#define KVMPROF_PROFILE_COMPARE_STATS_INTERVAL_H

#include "profile/compare/stats/design.h"

/* Two sides, of which an interval is wanted; all borrowed. */
struct stats_sides {
	const struct stats_design *design; /* its scratch is used */
	const double *base, *head;	   /* design->nbase, nhead values */
	bool relative;			   /* the ratio less one, not the difference */
	double confidence;		   /* 0 to 1 */
};

/*
 * Finds the interval of means: percentile-t of |t| (Hall 1988), for both sides with two runs or more, relative only for
 * positive means. Pairs of the design stay together. NaN where no interval exists.
 */
void stats_interval_means(const struct stats_sides *s, double *lo, double *hi);
/* Finds the percentile interval of quantiles. NaN where a relative one has no base. */
void stats_interval_quantiles(const struct stats_sides *s, double quantile, double *lo, double *hi);

#endif

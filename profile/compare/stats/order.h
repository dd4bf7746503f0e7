/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * order: does the order of running show in the values?
 */
#ifndef KVMPROF_PROFILE_COMPARE_STATS_ORDER_H
#define KVMPROF_PROFILE_COMPARE_STATS_ORDER_H

#include "profile/compare/stats/design.h"

/* Effects of the order of running on the values of the sides. */
struct stats_order_seen {
	bool drift; /* their level follows the order */
	bool alike; /* neighbours in time resemble each other */
};

/*
 * Returns the effects that have a p below 0.01, by shuffling within sides; none without an order or with
 * fewer than 8 runs.
 */
struct stats_order_seen stats_order_seen(const struct stats_design *d, const double *base,
					 const double *head);

/* Subtracts the straight line in the order of running, fitted within sides, from both. d->ordered. */
void stats_detrend(const struct stats_design *d, double *base, double *head);

#endif

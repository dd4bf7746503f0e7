/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * order: detects effects of the order of running on values, and removes a drift. No errors; a
 * design may be used by several threads here.
 */
#ifndef KVMPROF_PROFILE_COMPARE_STATS_ORDER_H
#define KVMPROF_PROFILE_COMPARE_STATS_ORDER_H

#include "profile/compare/stats/design.h"

/* Effects of the order of running on the values of the sides. */
struct stats_order_seen {
	bool drift; /* the level changes with the order */
	bool alike; /* neighbours in time are similar */
};

/*
 * Returns the effects with p of at most 0.01, by shuffling within sides; no effect if the order is
 * not known or there are fewer than 8 runs.
 */
struct stats_order_seen stats_order_seen(const struct stats_design *d, const double *base,
					 const double *head);

/*
 * Subtracts the straight line in the order of running, fitted within sides, from the values of
 * both. d->ordered must be set.
 */
void stats_detrend(const struct stats_design *d, double *base, double *head);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * design: the blocks within which runs could have been exchanged, from the order of running.
 */
#ifndef KVMPROF_PROFILE_COMPARE_STATS_DESIGN_H
#define KVMPROF_PROFILE_COMPARE_STATS_DESIGN_H

#include "base/err.h"
#include "profile/compare/stats/deals.h"

#include <stdbool.h>
#include <stdint.h>

#define STATS_ALPHA 0.01 /* default of struct stats_rule and struct stats_layout */

enum stats_pairing {
	STATS_AUTO, /* blocks if the order is known and interleaved, else free */
	STATS_FREE, /* any run could have been on either side: valid without drift only */
};

struct stats_layout {
	unsigned int nbase, nhead; /* 1 to STATS_MAX_RUNS */
	/*
	 * The position of each run in the order of running: distinct increasing numbers, e.g. start
	 * times. base_at[i] belongs to base value i. Both NULL: unknown.
	 */
	const uint64_t *base_at, *head_at;
	enum stats_pairing pairing;
	/*
	 * The alpha that the design must be able to reach: blocks are the smallest in which both
	 * sides ran (A/B pairs, if the order has such), joined with their neighbours until the
	 * smallest possible one-sided p is at most this. Depends on the order only, never on
	 * values. 0: STATS_ALPHA.
	 */
	double alpha;
	unsigned int resamples; /* 0: STATS_RESAMPLES; at most STATS_RESAMPLES_MAX */
	uint64_t seed;		/* 0: STATS_SEED */
};

struct stats_design {
	struct stats_deals deals;
	unsigned int nbase, nhead;
	unsigned int nblocks; /* blocks within which runs are dealt; 1: free */
	bool pairs;	      /* every block is one base and one head run */
	bool ordered;	      /* the order is known */
	bool one_order;	      /* pairs, and in each the same side went first */
	/*
	 * The order is known and the sides take turns so rarely (less than three blocks) that a
	 * drift of the host looks like a change: stats_compare() then never returns fail or pass if
	 * the runs of one side drift or depend on each other (STATS_DRIFTING).
	 */
	bool confounded;
	uint16_t *time;	 /* nbase + nhead run numbers (base first) in order of running, or NULL */
	uint16_t *block; /* the block of each run number, or NULL if free */
};

/*
 * Builds the design; *layout is used during the call only. The caller frees *d with
 * stats_design_deinit() after success. Returns 0, -EINVAL (counts, equal places, impossible blocks)
 * or -ENOMEM. One thread uses a design at a time.
 */
int stats_design_init(struct stats_design *d, const struct stats_layout *layout, struct err *e);
void stats_design_deinit(struct stats_design *d);

/*
 * Sets head_first[i] for each of npairs pairs: whether the head runs first in pair i, with
 * probability 1/2. The paired test then repeats the actual random assignment, so that neither drift
 * nor autocorrelation can raise its error. Any thread.
 */
void stats_order(unsigned int npairs, uint64_t seed, bool *head_first);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * deals: the ways in which runs can be dealt to two sides (permutations), and drawn from them
 * (bootstrap).
 *
 * A permutation test asks how often a difference as large as the one seen arises when runs are
 * dealt to the two sides by chance (permute.h); a bootstrap over runs shows how far the difference
 * may be off (interval.h). Both use the same deals and draws for all values of one design. No I/O;
 * one seed gives one result. One thread uses a struct stats_deals at a time, because of `scratch`.
 */
#ifndef KVMPROF_PROFILE_COMPARE_STATS_DEALS_H
#define KVMPROF_PROFILE_COMPARE_STATS_DEALS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STATS_MAX_RUNS 256u    /* a side */
#define STATS_EXACT_MAX 20000u /* up to this number of deals, all are tried */
#define STATS_RESAMPLES 9999u  /* random deals otherwise, and draws for intervals */
#define STATS_RESAMPLES_MAX 199999u
#define STATS_SEED 1u

/* Constant after stats_deals_init(), except for scratch. */
struct stats_deals {
	unsigned int na, nb;
	uint64_t seed;
	bool exact;	 /* all ways to deal are tried */
	size_t ndeals;	 /* including the observed one, which is the first */
	double p_least;	 /* smallest possible two-sided p; 1 if there is no test */
	uint16_t *deal;	 /* na of 0..na+nb-1 for each; NULL if a side has one run */
	uint16_t *draw;	 /* STATS_RESAMPLES times na of 0..na-1 and nb of 0..nb-1 */
	double *scratch; /* STATS_RESAMPLES values, for users of the deals */
};

/* The blocks within which runs may be exchanged; one block for all runs if all may. */
struct stats_blocks {
	/* For each run, side a first: a number below nblocks. Runs of one block are dealt anew. */
	const uint16_t *block;
	unsigned int nblocks;
	unsigned int resamples; /* 0: STATS_RESAMPLES; at most STATS_RESAMPLES_MAX */
};

/*
 * Builds the deals. If all blocks are pairs, draws take whole pairs, otherwise runs of each side.
 * Returns 0, -ENOMEM, or -EINVAL unless each side has 1 to STATS_MAX_RUNS runs and each run has a
 * block in range. The caller frees *s with stats_deals_deinit().
 */
int stats_deals_init(struct stats_deals *s, unsigned int na, unsigned int nb,
		     const struct stats_blocks *b, uint64_t seed, struct err *e);
void stats_deals_deinit(struct stats_deals *s);

/*
 * Return the next number of the generator (splitmix64), and a number below n. Change *state, which
 * one thread uses at a time.
 */
uint64_t stats_random(uint64_t *state);
unsigned int stats_pick(uint64_t *state, unsigned int n);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * runstats: are two groups of runs different?
 *
 * A value is what one run gave (a function's share of its time). Samples inside of a
 * run depend on each other, so the run is the unit: a permutation test asks how often
 * a difference of means this large arises when runs are dealt to the two sides by
 * chance, and a bootstrap over runs tells how far the difference may be off. Units
 * are the caller's. Nothing here does I/O; one seed gives one result.
 *
 * Sources: Phipson and Smyth 2010 ("Permutation p-values should never be zero"), Efron's
 * percentile interval, Benjamini and Hochberg 1995.
 */
#ifndef KVMPROF_PROFILE_COMPARE_STATS_RUNS_H
#define KVMPROF_PROFILE_COMPARE_STATS_RUNS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RUNSTATS_MAX_RUNS 256u	  /* a side */
#define RUNSTATS_EXACT_MAX 20000u /* so many ways to deal the runs are all tried */
#define RUNSTATS_RESAMPLES 9999u  /* else, and for intervals */
#define RUNSTATS_RESAMPLES_MAX 199999u
#define RUNSTATS_SEED 1u

struct runstats_result {
	double mean_a, mean_b, diff; /* b - a */
	/* Only when both sides have two runs or more: */
	bool tested;
	double p;      /* two-sided, never 0 */
	double lo, hi; /* of diff, 95 % */
};

/* The ways to deal and to draw, the same for all values that are compared. Const once made. */
struct runstats {
	unsigned int na, nb;
	uint64_t seed;
	bool exact;	 /* all ways to deal are tried */
	size_t ndeals;	 /* with the one that was seen */
	double p_least;	 /* no p can be lower; 1 when there is no test */
	uint16_t *deal;	 /* na of 0..na+nb-1 for each */
	uint16_t *draw;	 /* RUNSTATS_RESAMPLES times na of 0..na-1 and nb of 0..nb-1 */
	double *scratch; /* RUNSTATS_RESAMPLES */
};

/* Which runs may be dealt for each other, when not all may. */
struct runstats_blocks {
	/* Of each run, side a first: a number below nblocks; runs of one block are dealt anew. */
	const uint16_t *block;
	unsigned int nblocks;
	/*
	 * So many blocks in the order of their numbers exchange their sides together; 0, 1: each
	 * for itself. More needs one run of each side in every block.
	 */
	unsigned int glue;
	unsigned int resamples; /* 0: RUNSTATS_RESAMPLES; to RUNSTATS_RESAMPLES_MAX */
};

/* 1 to RUNSTATS_MAX_RUNS runs on each side, else -EINVAL. -ENOMEM. */
int runstats_init(struct runstats *s, unsigned int na, unsigned int nb, uint64_t seed,
		  struct err *e);
void runstats_deinit(struct runstats *s);

/*
 * As runstats_init(), but runs are dealt within blocks only (stratified or paired permutation).
 * If all blocks are pairs, draws take pairs as a whole, else sides for themselves. -EINVAL
 * for blocks out of range.
 */
int runstats_init_blocks(struct runstats *s, unsigned int na, unsigned int nb,
			 const struct runstats_blocks *b, uint64_t seed, struct err *e);

/* The generator behind all of it: splitmix64, and a number below n. */
uint64_t runstats_random(uint64_t *state);
unsigned int runstats_pick(uint64_t *state, unsigned int n);

/* a: na values, b: nb values. Not from several threads at once (the scratch). */
void runstats_compare(const struct runstats *s, const double *a, const double *b,
		      struct runstats_result *out);

/*
 * What one run a side knows: half the width of the 95 % interval of the difference of
 * two shares (0 to 1) of na and nb samples, if samples were independent. They are not
 * quite, and runs differ among themselves as well: the truth is wider.
 */
double runstats_noise(double share_a, double na, double share_b, double nb);

/* Benjamini and Hochberg's q of n p-values; p and q may be the same array. -ENOMEM. */
int runstats_fdr(const double *p, size_t n, double *q);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * change: where did a series of values change?
 *
 * E-divisive (Matteson and James 2014, with the segment's end as MongoDB's performance team uses
 * it): the split of a segment with the largest energy distance |a - b| between its parts is
 * compared with the largest after shuffling the segment; the parts of a significant one are judged in the same way,
 * each by itself.
 * Finds changes of level, spread and shape. Values of a history are means of a commit's
 * runs; the order is that of commits.
 *
 * Pure; any thread. O(n^2) time for each shuffle's segment, O(n) memory.
 */
#ifndef KVMPROF_PROFILE_COMPARE_STATS_CHANGE_H
#define KVMPROF_PROFILE_COMPARE_STATS_CHANGE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STATS_HISTORY_MAX 1000u /* values; longer histories are cut by the caller, oldest first */
#define STATS_CHANGES_MAX 64u
#define STATS_CHANGE_SEGMENT 3u /* values in a segment, at least */
#define STATS_CHANGE_ALPHA 0.01
#define STATS_CHANGE_SHUFFLES 499u

struct stats_change_options {
	double alpha;	       /* 0: STATS_CHANGE_ALPHA; of any change at all in a series without */
	unsigned int shuffles; /* 0: STATS_CHANGE_SHUFFLES; 99 to 9999 */
	double min_effect;     /* relative; smaller steps between means are left out; 0: none */
	uint64_t seed;	       /* 0: STATS_SEED */
	/*
	 * Only changes of level, neither of spread nor of shape alone. Segments stay as they are: `before' and `after' are
	 * of those that meet at the change.
	 */
	bool levels;
	bool dependent; /* values may depend on the one before, as an AR(1) does */
};

struct stats_change {
	size_t at; /* first value of the new level */
	/* means of the segments left and right of it, up to the next changes */
	double before, after;
	double p;      /* p-value of its own test */
	double energy; /* the scaled statistic, as values */
};

/*
 * Changes in order of at; *n of them (at most STATS_CHANGES_MAX). *n is 0 for less than two
 * segments. -EINVAL: no number, n over STATS_HISTORY_MAX, options. -ENOMEM.
 */
int stats_changes(const double *v, size_t nvalues, const struct stats_change_options *opt,
		  struct stats_change out[STATS_CHANGES_MAX], size_t *n, struct err *e);

/*
 * Returns the least p that a change between `left` and `right` values can have, whatever its size: few values have few
 * arrangements. 1: a part is shorter than a segment.
 */
double stats_change_least_p(size_t left, size_t right);

/* Returns whether any change, wherever and of whatever size, could be found in n values. */
bool stats_change_is_possible(size_t n, double alpha);

#endif

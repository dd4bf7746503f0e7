/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * change: finds the places where a series of values changed.
 *
 * E-divisive (Matteson and James 2014, with the segment's end as MongoDB's performance team uses
 * it): the split of a segment with the largest energy distance |a - b| between its parts is
 * compared with the largest one after shuffling the segment; the parts of a significant split are
 * tested in the same way, separately. This finds changes of level, spread and shape. Values of a
 * history are means of a commit's runs, in the order of commits.
 *
 * No I/O; any thread. O(n^2) time for each shuffle of a segment, O(n) memory.
 */
#ifndef KVMPROF_PROFILE_COMPARE_STATS_CHANGE_H
#define KVMPROF_PROFILE_COMPARE_STATS_CHANGE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STATS_HISTORY_MAX 1000u /* values; the caller drops the oldest ones of a longer history */
#define STATS_CHANGES_MAX 64u
#define STATS_CHANGE_SEGMENT 3u /* minimum number of values in a segment */
#define STATS_CHANGE_ALPHA 0.01
#define STATS_CHANGE_SHUFFLES 499u

struct stats_change_options {
	double alpha; /* probability of a change in a constant series; 0: STATS_CHANGE_ALPHA */
	unsigned int shuffles; /* 0: STATS_CHANGE_SHUFFLES; 99 to 9999 */
	double min_effect;     /* relative; smaller steps between means are omitted; 0: none */
	uint64_t seed;	       /* 0: STATS_SEED */
	/*
	 * Return only changes of level, not of spread or shape alone. `before` and `after` are
	 * still those of the segments that meet at the change.
	 */
	bool levels;
	/*
	 * Values may depend on the one before, as an AR(1) or a random walk does: a change is what such dependence does not
	 * explain (wander.h).
	 */
	bool dependent;
};

struct stats_change {
	size_t at; /* index of the first value of the new level */
	/* means of the segments left and right of it, up to the adjacent changes */
	double before, after;
	double p;      /* p-value of its own test */
	double energy; /* the scaled statistic, in the unit of the values */
	/* With `levels`: a straight line fits better than levels, and `at` is merely within the change. */
	bool gradual;
};

/*
 * Stores the changes in out, sorted by `at`, and their number in *n. *n is 0 if there are less than
 * two segments. Returns 0; -EINVAL for values that are not finite, more than STATS_HISTORY_MAX
 * values, or options out of range; or -ENOMEM.
 */
int stats_changes(const double *v, size_t nvalues, const struct stats_change_options *opt,
		  struct stats_change out[STATS_CHANGES_MAX], size_t *n, struct err *e);

/*
 * Returns the smallest p that a change between `left` and `right` values can have, whatever its
 * size, because few values have few arrangements; 1 if a part is shorter than STATS_CHANGE_SEGMENT.
 */
double stats_change_least_p(size_t left, size_t right);

/* Returns whether n values can show a change at this alpha, at any place and of any size. */
bool stats_change_is_possible(size_t n, double alpha);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * flamechart: draws stacks over time as boxes; x is the time since the profile's start.
 *
 * Time is divided into columns, each a fraction of a pixel wide. A column of a lane shows the path
 * on which most of its time was spent, function by function from the outermost one; equal frames of
 * neighbouring columns are one box. The size therefore depends on the picture's width and not on
 * the number of samples. A sample covers the time from the previous one in its lane to itself, at
 * most its own weight, or, if weights are not times, at most twice the mean distance.
 *
 * There is no I/O; the stackset must have its samples. Times are in ns. Any thread may call
 * flamechart_build().
 */
#ifndef KVMPROF_PROFILE_ANALYSE_FLAME_FLAMECHART_H
#define KVMPROF_PROFILE_ANALYSE_FLAME_FLAMECHART_H

#include "profile/analyse/flame/flamegraph.h"
#include "profile/analyse/stacks/phases.h"

#define FLAMECHART_COLUMNS_PER_PIXEL 2u
#define FLAMECHART_MAX_ROWS 256u /* rows of a lane; deeper frames are dropped */
/* Rows at the top of a lane with less than this share of its time are omitted. */
#define FLAMECHART_LEAST_SHARE 0.005

/* One lane for each vCPU, or for each thread. */
enum flamechart_lanes { FLAMECHART_BY_CPU, FLAMECHART_BY_THREAD };

/*
 * Fills in *p; the caller has set its members as in flamegraph.h and frees it with
 * flame_picture_deinit(), also after a failure. Beyond FLAME_MAX_LANES lanes, those with least time
 * are omitted, and the note mentions it. phases may be NULL; if they are not those of a boot, the
 * bands above the lanes are the slices of markers. Returns 0, -ENODATA without samples, or -ENOMEM.
 */
int flamechart_build(struct flame_picture *p, const struct stackset *s, enum flamechart_lanes by,
		     const struct phases *phases, struct err *e);

#endif

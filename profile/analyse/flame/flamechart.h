/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * flamechart: stacks over time, as boxes: x is the time since the profile's first moment.
 *
 * Time is cut into columns, each as wide as part of a pixel. A column of a lane shows the
 * path that most of its time went through, function by function from the outermost one;
 * equal frames of neighbours are one box. So the size depends on the picture's width and
 * not on the number of samples. A sample stands for the time from the one before it in its
 * lane to itself, at most its own weight, or, where weights are no times, at most twice the
 * mean distance.
 *
 * Pure; the stackset must have its samples. Times in ns.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_FLAME_FLAMECHART_H
#define KVMPROF_PROFILE_ANALYSE_FLAME_FLAMECHART_H

#include "profile/analyse/flame/flamegraph.h"
#include "profile/analyse/stacks/phases.h"

#define FLAMECHART_COLUMNS_PER_PIXEL 2u
#define FLAMECHART_MAX_ROWS 256u /* of a lane; deeper frames are cut off */
/* Rows at the top of a lane with less than this share of its time are left out. */
#define FLAMECHART_LEAST_SHARE 0.005

enum flamechart_lanes { FLAMECHART_BY_CPU, FLAMECHART_BY_THREAD };

/*
 * Of more than FLAME_MAX_LANES lanes those with least time are left out, and the note says so.
 * phases may be NULL; without a boot's the bands above the lanes are the slices of markers.
 */
int flamechart_build(struct flame_picture *p, const struct stackset *s, enum flamechart_lanes by,
		     const struct phases *phases, struct err *e);

#endif

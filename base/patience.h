/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * patience: for how long something is looked for. Of the time between two looks at most
 * PATIENCE_LOOK_NS count: on a host that is busy, and where the clock jumps, there are as many looks as elsewhere.
 */
#ifndef KVMPROF_BASE_PATIENCE_H
#define KVMPROF_BASE_PATIENCE_H

#include "base/clock.h"

#define PATIENCE_LOOK_NS 10000000u

/* All 0 before the first look. */
struct patience {
	uint64_t last_ns, spent_ns;
};

/* Before each look. now_ns: of any clock. False: limit_ns have been spent. */
static inline bool patience_is_left(struct patience *p, uint64_t now_ns, uint64_t limit_ns)
{
	uint64_t since = p->last_ns && now_ns > p->last_ns ? now_ns - p->last_ns : 0;

	p->spent_ns += since < PATIENCE_LOOK_NS ? since : PATIENCE_LOOK_NS;
	p->last_ns = now_ns;
	return p->spent_ns < limit_ns;
}

#endif

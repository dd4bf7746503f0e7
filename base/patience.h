/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * patience: a time limit for polling. Between two polls at most PATIENCE_LOOK_NS of elapsed time
 * counts, so on a busy host, or when the clock jumps, there are as many polls as elsewhere.
 */
#ifndef KVMPROF_BASE_PATIENCE_H
#define KVMPROF_BASE_PATIENCE_H

#include "base/clock.h"

#define PATIENCE_LOOK_NS 10000000u

/* A limit's state; all zero before the first poll. */
struct patience {
	uint64_t last_ns, spent_ns;
};

/*
 * Accounts for the time since the last call, and returns false once limit_ns have been spent.
 * Called before each poll; now_ns may be of any clock. Not thread-safe.
 */
static inline bool patience_is_left(struct patience *p, uint64_t now_ns, uint64_t limit_ns)
{
	uint64_t since = p->last_ns && now_ns > p->last_ns ? now_ns - p->last_ns : 0;

	p->spent_ns += since < PATIENCE_LOOK_NS ? since : PATIENCE_LOOK_NS;
	p->last_ns = now_ns;
	return p->spent_ns < limit_ns;
}

#endif

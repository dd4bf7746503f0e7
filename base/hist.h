/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hist: a fixed-size histogram of durations, safe to feed on a hot path.
 *
 * Buckets are log-linear: 8 to each power of two, so a percentile is exact to
 * 12.5 % of its value. One writer; who reads while it writes takes a copy (base/count.h) and
 * sees a state a few entries old.
 */
#ifndef KVMPROF_BASE_HIST_H
#define KVMPROF_BASE_HIST_H

#include <stdint.h>

#define HIST_BUCKETS 496

struct hist {
	uint64_t count;
	uint64_t sum; /* ns */
	uint64_t max; /* ns */
	uint32_t bucket[HIST_BUCKETS];
};

void hist_add(struct hist *h, uint64_t ns);
/* dst += src */
void hist_merge(struct hist *dst, const struct hist *src);
/* The value below which `per_mille` thousandths of the entries lie; 0 when empty. */
uint64_t hist_quantile(const struct hist *h, unsigned int per_mille);

#endif

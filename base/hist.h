/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hist: a histogram of durations of fixed size, cheap enough for a hot path.
 *
 * Buckets are log-linear, 8 per power of two, so a quantile is exact to 12.5 % of its value. All
 * zero is an empty histogram. One thread writes; another thread that reads meanwhile takes a copy
 * with count_copy() (base/count.h), which may lack the last few entries.
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

/* Adds one duration. Called by the writing thread only. */
void hist_add(struct hist *h, uint64_t ns);
/* Adds all entries of *src to *dst. */
void hist_merge(struct hist *dst, const struct hist *src);
/*
 * Returns the value in ns below which per_mille thousandths of the entries lie, rounded up to the
 * end of its bucket; 0 if empty.
 */
uint64_t hist_quantile(const struct hist *h, unsigned int per_mille);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rate: a limit of bytes and of operations for each second, as two token buckets.
 *
 * A bucket holds what passes in RATE_BURST_NS. An operation may begin as soon as neither bucket is empty, and takes all of its
 * tokens at once, also those that are not there yet: it may be larger than a bucket, and the next ones wait for it. Times
 * are the caller's, of one clock. A caller with several threads has a lock.
 */
#ifndef KVMPROF_VMM_DEV_RATE_H
#define KVMPROF_VMM_DEV_RATE_H

#include "base/limits.h"

#include <stdbool.h>
#include <stdint.h>

#define RATE_BURST_NS UINT64_C(100000000)
/* Bytes a second, at least: a request may have some MiB. */
#define RATE_LEAST_BYTES 4096u

struct rate {
	struct rate_limit limit;
	uint64_t bytes_ns, operations_ns; /* the time from which on the bucket is not empty */
};

/* Fills both buckets. */
void rate_init(struct rate *r, const struct rate_limit *limit);
bool rate_is_limited(const struct rate *r);
/* Returns the moment from which on the next operation may begin, which may be in the past. */
uint64_t rate_next_ns(const struct rate *r);
/* Takes the tokens of an operation that begins now. */
void rate_take(struct rate *r, uint64_t now_ns, uint64_t bytes);

#endif

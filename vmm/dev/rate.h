/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rate: limits the bytes and the operations per second, with two token buckets.
 *
 * A bucket holds the tokens of RATE_BURST_NS. An operation may begin when neither bucket is empty,
 * and takes all of its tokens at once, including tokens that are not there yet: an operation may be
 * larger than a bucket, and the next ones wait for it. The caller provides the times, all of one
 * clock. Not thread-safe: the caller serialises calls on one struct rate.
 */
#ifndef KVMPROF_VMM_DEV_RATE_H
#define KVMPROF_VMM_DEV_RATE_H

#include "base/limits.h"

#include <stdbool.h>
#include <stdint.h>

#define RATE_BURST_NS UINT64_C(100000000)
/* The minimum limit in bytes per second, because one request may have several MiB. */
#define RATE_LEAST_BYTES 4096u

struct rate {
	struct rate_limit limit;
	uint64_t bytes_ns, operations_ns; /* time from which on the bucket is not empty */
};

/* Initialises *r with both buckets full. */
void rate_init(struct rate *r, const struct rate_limit *limit);
/* Returns whether there is any limit. */
bool rate_is_limited(const struct rate *r);
/* Returns the time from which on the next operation may begin; it may be in the past. */
uint64_t rate_next_ns(const struct rate *r);
/* Takes the tokens of an operation of `bytes` bytes that begins at now_ns. */
void rate_take(struct rate *r, uint64_t now_ns, uint64_t bytes);

#endif

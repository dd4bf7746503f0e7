/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/dev/rate.h"

#include "base/clock.h"

void rate_init(struct rate *r, const struct rate_limit *limit)
{
	*r = (struct rate){ .limit = *limit };
}

bool rate_is_limited(const struct rate *r)
{
	return r->limit.bytes || r->limit.operations;
}

uint64_t rate_next_ns(const struct rate *r)
{
	return r->bytes_ns > r->operations_ns ? r->bytes_ns : r->operations_ns;
}

/*
 * Takes tokens from a bucket. A full one is treated as empty since RATE_BURST_NS, the time that
 * filling it takes.
 */
static void rate_take_tokens(uint64_t *empty_ns, uint64_t now_ns, uint64_t amount,
			     uint64_t each_second)
{
	uint64_t full = now_ns > RATE_BURST_NS ? now_ns - RATE_BURST_NS : 0;
	uint64_t from = *empty_ns > full ? *empty_ns : full;
	unsigned __int128 to;

	if (!each_second)
		return;
	to = from + ((unsigned __int128)amount * NSEC_PER_SEC + each_second - 1) / each_second;
	*empty_ns = to > UINT64_MAX ? UINT64_MAX : (uint64_t)to;
}

void rate_take(struct rate *r, uint64_t now_ns, uint64_t bytes)
{
	rate_take_tokens(&r->bytes_ns, now_ns, bytes, r->limit.bytes);
	rate_take_tokens(&r->operations_ns, now_ns, 1, r->limit.operations);
}

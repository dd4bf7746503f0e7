/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sink_ring: a sink that keeps the newest samples only, up to a number of bytes.
 *
 * It forwards to another sink. Tasks, mappings, modules and losses are forwarded at once, because
 * they are small and later samples need them. Samples wait in a circular buffer, where new ones
 * replace the oldest; end(), copy() and a further kernel() forward those that are left. Replaced
 * samples are reported as lost, for each vCPU, at the time of the oldest sample that is left.
 * sink_ring_overwritten() counts them apart from samples that were dropped because the vCPU's ring
 * was full.
 *
 * Samples therefore reach the other sink long after records with a later time.
 */
#ifndef KVMPROF_PROFILE_FORMAT_SINK_RING_H
#define KVMPROF_PROFILE_FORMAT_SINK_RING_H

#include "profile/format/sink/sink.h"

/* Lower limit in bytes: several samples of the maximum stack depth fit. */
#define SINK_RING_MIN 16384u
#define SINK_RING_MAX (16ull << 30)

/*
 * Creates the sink in *out, in front of `to`, with a buffer of `size` bytes (raised to
 * SINK_RING_MIN). Takes ownership of `to`; it is destroyed on failure, too. The caller destroys
 * *out with its destroy operation. Returns 0 or -ENOMEM.
 */
int sink_ring_create(struct sink **out, struct sink *to, size_t size, struct err *e);

/*
 * Returns the number of samples that newer ones replaced. s must be a sink of sink_ring_create().
 * Any thread may call it.
 */
uint64_t sink_ring_overwritten(const struct sink *s);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sink_ring: keeps the newest samples only, so many bytes of them.
 *
 * Stands in front of another sink. Tasks, mappings, modules and losses pass through at
 * once, as they are small and needed for whichever samples are left in the end; samples
 * wait in a circular buffer, where the oldest give way to new ones, and reach the other
 * sink at end(), or in a copy. What gave way is told as lost, for each vCPU, before the
 * oldest sample that is left, and counted apart from samples that found no room.
 *
 * So samples reach the other sink long after records of a later time.
 */
#ifndef KVMPROF_PROFILE_FORMAT_SINK_RING_H
#define KVMPROF_PROFILE_FORMAT_SINK_RING_H

#include "profile/format/sink/sink.h"

/* A sample of the deepest stack fits several times. */
#define SINK_RING_MIN 16384u
#define SINK_RING_MAX (16ull << 30)

/* size: bytes. Takes `to` over, also when it fails. */
int sink_ring_create(struct sink **out, struct sink *to, size_t size, struct err *e);

/* Samples that gave way so far. Any thread. */
uint64_t sink_ring_overwritten(const struct sink *s);

#endif

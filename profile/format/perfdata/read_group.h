/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * read_group: samples that are made of the values of counters.
 *
 * `perf record -e '{a,b,c}:S'` lets the first event of a group sample, and each sample has the values of all counters of the group
 * (PERF_SAMPLE_READ). What a counter gained since its last sample is the period of a sample of its
 * own event, at the same place; without a gain there is none. Samples count in order of time.
 *
 *   values := group: u64 nr, [time enabled], [time running], nr times (value, [id], [lost])
 *             else:  value, [time enabled], [time running], [id], [lost]
 *
 * Source: include/uapi/linux/perf_event.h (struct read_format); tools/perf/util/session.c, deliver_sample_group().
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_READ_GROUP_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_READ_GROUP_H

#include "profile/format/perfdata/private.h"

struct perfdata_gain {
	uint32_t event;
	uint64_t period; /* above 0 */
};

/*
 * Returns how many events gained something with this sample of `event`, at most PERFDATA_MAX_ATTRS, and which in out. Called once
 * for each sample, in order of time. Values without an id that is known count for nothing.
 */
uint32_t perfdata_group_gains(struct perfdata_private *v, uint32_t event,
			      const struct perfdata_record *r,
			      struct perfdata_gain out[PERFDATA_MAX_ATTRS]);
/* Begins anew, before the first sample. */
void perfdata_group_reset(struct perfdata_private *v);

#endif

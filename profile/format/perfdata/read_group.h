/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * read_group: makes samples from the values of counters.
 *
 * With `perf record -e '{a,b,c}:S'` the first event of a group samples, and each sample has the
 * values of all counters of the group (PERF_SAMPLE_READ). The increase of a counter since its last
 * sample is the period of a sample of its own event at the same place; without an increase there is
 * no sample. Samples count in order of time.
 *
 *   values := group: u64 nr, [time enabled], [time running], nr times (value, [id], [lost])
 *             else:  value, [time enabled], [time running], [id], [lost]
 *
 * Source: include/uapi/linux/perf_event.h (struct read_format); tools/perf/util/session.c,
 * deliver_sample_group(). Called by the reader's thread.
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_READ_GROUP_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_READ_GROUP_H

#include "profile/format/perfdata/private.h"

struct perfdata_gain {
	uint32_t event;
	uint64_t period; /* increase in the event's unit; above 0 */
};

/*
 * Stores the increases that the sample *r of `event` shows in out, one per event, and returns their
 * number (at most PERFDATA_MAX_ATTRS). Call it once for each sample, in order of time. Values with
 * an unknown id are ignored.
 */
uint32_t perfdata_group_gains(struct perfdata_private *v, uint32_t event,
			      const struct perfdata_record *r,
			      struct perfdata_gain out[PERFDATA_MAX_ATTRS]);
/* Discards the counters' last values, before the first sample. */
void perfdata_group_reset(struct perfdata_private *v);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfetto_samples: one event's samples with their stacks, and its VM exits as slices. Called by
 * the thread that writes the trace.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_EXPORT_PERFETTO_SAMPLES_H
#define KVMPROF_PROFILE_ANALYSE_EXPORT_PERFETTO_SAMPLES_H

#include "profile/analyse/export/perfetto.h"

/*
 * Writes the samples of s, a set of one event, to a sequence. Returns 0 or -ENOMEM; a failure of
 * p->packet is reported later.
 */
int perfetto_samples(struct perfetto *p, const struct stackset *s, unsigned int sequence);

#endif

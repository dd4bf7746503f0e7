/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfetto_samples: one event's samples with their stacks, and its VM exits as slices.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_EXPORT_PERFETTO_SAMPLES_H
#define KVMPROF_PROFILE_ANALYSE_EXPORT_PERFETTO_SAMPLES_H

#include "profile/analyse/export/perfetto.h"

/* s: of one event. -ENOMEM; what failed of the packets is seen later. */
int perfetto_samples(struct perfetto *p, const struct stackset *s, unsigned int sequence);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfetto_tasks: which task ran on which vCPU, as slices on the tracks of both.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_EXPORT_PERFETTO_TASKS_H
#define KVMPROF_PROFILE_ANALYSE_EXPORT_PERFETTO_TASKS_H

#include "profile/analyse/export/perfetto.h"

enum perfetto_spans { PERFETTO_SPANS, PERFETTO_NO_SPANS };

/* s: of one event. -ENOMEM; what failed of the packets is seen later. */
int perfetto_tasks(struct perfetto *p, const struct stackset *s, enum perfetto_spans which);

#endif

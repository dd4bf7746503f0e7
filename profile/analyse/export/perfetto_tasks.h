/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfetto_tasks: the task that ran on each vCPU, as slices on the tracks of both. Called by the
 * thread that writes the trace.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_EXPORT_PERFETTO_TASKS_H
#define KVMPROF_PROFILE_ANALYSE_EXPORT_PERFETTO_TASKS_H

#include "profile/analyse/export/perfetto.h"

enum perfetto_spans { PERFETTO_SPANS, PERFETTO_NO_SPANS };

/*
 * Writes the tasks of s, a set of one event; PERFETTO_NO_SPANS writes no slices. Returns 0 or
 * -ENOMEM; a failure of p->packet is reported later.
 */
int perfetto_tasks(struct perfetto *p, const struct stackset *s, enum perfetto_spans which);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfetto_requests: requests of disks and packets of networks, as slices. Called by the thread
 * that writes the trace.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_EXPORT_PERFETTO_REQUESTS_H
#define KVMPROF_PROFILE_ANALYSE_EXPORT_PERFETTO_REQUESTS_H

#include "profile/analyse/export/perfetto.h"

/*
 * Writes the requests in the totals of s, a set of one event. Returns 0 or -ENOMEM; a failure of
 * p->packet is reported later.
 */
int perfetto_requests(struct perfetto *p, const struct stackset *s);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfetto_requests: requests of disks and packets of networks, as slices.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_EXPORT_PERFETTO_REQUESTS_H
#define KVMPROF_PROFILE_ANALYSE_EXPORT_PERFETTO_REQUESTS_H

#include "profile/analyse/export/perfetto.h"

/* s: of one event. -ENOMEM; what failed of the packets is seen later. */
int perfetto_requests(struct perfetto *p, const struct stackset *s);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * where: where the time of the vCPUs went, and with the event host what this host reports.
 */
#ifndef KVMPROF_PROFILE_RECORD_SUMMARY_WHERE_H
#define KVMPROF_PROFILE_RECORD_SUMMARY_WHERE_H

#include "profile/record/summary/facts.h"
#include "profile/record/summary/summary.h"

/* Where the vCPUs' time went; with the event host "where" and "host_threads". */
void summary_where(const struct facts_out *o, const struct summary *s);

#endif

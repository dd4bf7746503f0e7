/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * where: the part of the summary about the time of the vCPUs, and with the event host about this
 * host. Called by the thread that writes the summary.
 */
#ifndef KVMPROF_PROFILE_RECORD_SUMMARY_WHERE_H
#define KVMPROF_PROFILE_RECORD_SUMMARY_WHERE_H

#include "profile/record/summary/facts.h"
#include "profile/record/summary/summary.h"

/* Writes how the vCPUs' time was spent; with the event host "where" and "host_threads". */
void summary_where(const struct facts_out *o, const struct summary *s);

#endif

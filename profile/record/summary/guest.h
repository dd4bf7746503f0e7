/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest: what was found out about the guest's kernel, tasks and programs, and what was not and why.
 */
#ifndef KVMPROF_PROFILE_RECORD_SUMMARY_GUEST_H
#define KVMPROF_PROFILE_RECORD_SUMMARY_GUEST_H

#include "profile/record/summary/facts.h"
#include "profile/record/summary/summary.h"

/* "guest" */
void summary_guest(const struct facts_out *o, const struct guest_stats *g);

#endif

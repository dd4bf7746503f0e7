/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest: the part of the summary about the guest's kernel, tasks and programs, including what is
 * unknown and the reason. Called by the thread that writes the summary.
 */
#ifndef KVMPROF_PROFILE_RECORD_SUMMARY_GUEST_H
#define KVMPROF_PROFILE_RECORD_SUMMARY_GUEST_H

#include "profile/record/summary/facts.h"
#include "profile/record/summary/summary.h"

/* Writes "guest". */
void summary_guest(const struct facts_out *o, const struct guest_stats *g);

#endif

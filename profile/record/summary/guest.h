/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * summary_guest: what was found out about the guest's kernel, tasks and programs, and
 * what was not and why; part of the summary.
 */
#ifndef KVMPROF_PROFILE_RECORD_SUMMARY_GUEST_H
#define KVMPROF_PROFILE_RECORD_SUMMARY_GUEST_H

#include "base/buf.h"
#include "profile/record/guest/guest.h"

#include <stdio.h>

void summary_guest_print(const struct guest_stats *g, FILE *out);
/* As a member `"guest":{...}` with a comma in front. */
void summary_guest_json(const struct guest_stats *g, struct buf *out);

#endif

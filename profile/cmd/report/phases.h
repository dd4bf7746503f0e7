/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * phases: the table of `kvmprof report --phase`: the time of a run, cut into slices.
 */
#ifndef KVMPROF_PROFILE_CMD_REPORT_PHASES_H
#define KVMPROF_PROFILE_CMD_REPORT_PHASES_H

#include "profile/analyse/stacks/slices.h"

/* top: the number of rows; 0: all. */
void report_phases_text(const struct slices *all, unsigned long top);
/* Returns 0 or -ENOMEM. */
int report_phases_json(const struct slices *all);

#endif

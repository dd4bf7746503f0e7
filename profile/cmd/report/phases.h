/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * phases: the table of `kvmprof report --phase`: the time of a run, cut into slices. Called by the
 * main thread.
 */
#ifndef KVMPROF_PROFILE_CMD_REPORT_PHASES_H
#define KVMPROF_PROFILE_CMD_REPORT_PHASES_H

#include "profile/analyse/stacks/slices.h"

/* Prints the slices to stdout as a table of at most `top` rows (0: all). */
void report_phases_text(const struct slices *all, unsigned long top);
/* Prints all slices to stdout as JSON. Returns 0 or -ENOMEM. */
int report_phases_json(const struct slices *all);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_repeat: makes the same run several times, and compares the profiles. Called by the main
 * thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_REPEAT_H
#define KVMPROF_PROFILE_RECORD_RUN_REPEAT_H

#include "profile/record/options/options.h"

/*
 * Makes o->repeat runs in sequence, each a process of this program with the same arguments. The
 * first one keeps its profile at o->output; the others exist beside it while they are compared. The
 * first profile that differs is kept at o->output.differs. Prints the result to standard error.
 * Returns the exit status: that of a run that failed, 1 if profiles differ, else that of all runs.
 */
int run_repeat(const struct run_options *o, int argc, char **argv);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_repeat: the same run several times, and whether its profiles are equal.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_REPEAT_H
#define KVMPROF_PROFILE_RECORD_RUN_REPEAT_H

#include "profile/record/options/options.h"

/*
 * o->repeat runs, each a process of this program with the same arguments, in turn. The first keeps
 * its profile at o->output, the others theirs beside it for as long as they are compared; the first
 * that differs stays, at o->output.differs. Says on standard error what came out. The exit status:
 * that of a run which failed, 1 where profiles differ, else that of all.
 */
int run_repeat(const struct run_options *o, int argc, char **argv);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * exec: the options of `kvmprof run` for a command to run in the guest and for the files that it
 * finds there. All functions are called by the main thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_OPTIONS_EXEC_H
#define KVMPROF_PROFILE_RECORD_OPTIONS_EXEC_H

#include "base/option.h"
#include "profile/record/rootfs/exec_options.h"

struct run_options;
/* Rows whose struct is run_options. */
extern const struct option_row run_exec_rows[];

/* Returns NULL if the options fit each other, else a static message of one line. */
const char *run_options_exec_check(const struct run_options *run);

#endif

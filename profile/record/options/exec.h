/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * exec: the options of `kvmprof run` about a command to run in the guest and the
 * files that it finds there.
 */
#ifndef KVMPROF_PROFILE_RECORD_OPTIONS_EXEC_H
#define KVMPROF_PROFILE_RECORD_OPTIONS_EXEC_H

#include "base/option.h"
#include "profile/record/rootfs/exec_options.h"

struct run_options;
/* About a struct run_options. */
extern const struct option_row run_exec_rows[];

/* Do they fit one another? NULL, or a message of one line. */
const char *run_options_exec_check(const struct run_options *run);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * report_options: the command line of `kvmprof report`. The views of a report are in
 * profile/cmd/report. Called by the main thread.
 */
#ifndef KVMPROF_PROFILE_CMD_REPORT_OPTIONS_H
#define KVMPROF_PROFILE_CMD_REPORT_OPTIONS_H

#include "profile/cmd/report/row.h"

/*
 * Fills *opt with the defaults and the options of the command line; texts of argv are borrowed.
 * Prints an error, or the help. Returns -1 to continue, or the exit status. The caller calls
 * report_options_deinit() in either case.
 */
int report_options_parse(struct report_options *opt, int argc, char **argv);
/* Frees the regular expressions of the options. */
void report_options_deinit(struct report_options *opt);

#endif

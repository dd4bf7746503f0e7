/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * report_options: the command line of `kvmprof report`. The views of a report are in profile/cmd/report.
 */
#ifndef KVMPROF_PROFILE_CMD_REPORT_OPTIONS_H
#define KVMPROF_PROFILE_CMD_REPORT_OPTIONS_H

#include "profile/cmd/report/row.h"

/* Returns -1 to go on, else the exit status. */
int report_options_parse(struct report_options *opt, int argc, char **argv);
void report_options_deinit(struct report_options *opt);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_common: how the subcommands say that they were called wrongly. argv is what
 * the subcommand was given, argv[0] its name. Prints one line to stderr and returns
 * the exit status, 2. Main thread only: getopt's variables are read.
 */
#ifndef KVMPROF_PROFILE_CMD_COMMON_H
#define KVMPROF_PROFILE_CMD_COMMON_H

/* "WHAT 'ARG'", and where the help is. */
int cmd_wrong_usage(char *const argv[], const char *what, const char *arg);

/*
 * For what getopt_long just refused: c is ':' (a value is missing; the option string
 * begins with ':') or '?'.
 */
int cmd_wrong_option(char *const argv[], int c);

#endif

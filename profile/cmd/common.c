/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/common.h"

#include <getopt.h>
#include <stdio.h>

int cmd_wrong_usage(char *const argv[], const char *what, const char *arg)
{
	fprintf(stderr, "kvmprof %s: %s '%s' (try kvmprof %s --help)\n", argv[0], what, arg,
		argv[0]);
	return 2;
}

int cmd_wrong_option(char *const argv[], int c)
{
	return cmd_wrong_usage(argv, c == ':' ? "missing value for" : "unknown option",
			       argv[optind - 1]);
}

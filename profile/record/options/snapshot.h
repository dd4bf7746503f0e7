/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * snapshot: the options of `kvmprof run` that save a machine or go on with one.
 */
#ifndef KVMPROF_PROFILE_RECORD_OPTIONS_SNAPSHOT_H
#define KVMPROF_PROFILE_RECORD_OPTIONS_SNAPSHOT_H

#include "base/option.h"

#include <stdbool.h>

/* Part of struct run_options; NULL or false: not given. */
struct run_snapshot_options {
	const char *from;    /* the file to go on with */
	const char *save;    /* the file to write */
	const char *at, *on; /* when: SYMBOL[+OFFSET], expression for the console */
	bool go_on;	     /* after that */
	bool trust;	     /* `from` may name what it uses of this host */
};

/* About a struct run_options. */
extern const struct option_row run_snapshot_rows[];

struct run_options;
/* Does the option of this long name go with --snapshot? */
bool run_options_snapshot_takes(const char *name);
/* What fits one another. -1, or the exit status. */
int run_options_snapshot_check(const struct run_options *o);

#endif

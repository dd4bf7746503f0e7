/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * snapshot: the options of `kvmprof run` that save a machine or continue a saved one. All functions
 * are called by the main thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_OPTIONS_SNAPSHOT_H
#define KVMPROF_PROFILE_RECORD_OPTIONS_SNAPSHOT_H

#include "base/option.h"

#include <stdbool.h>

/* A part of struct run_options; NULL or false: not given. */
struct run_snapshot_options {
	const char *from;    /* the file to continue */
	const char *save;    /* the file to write */
	const char *at, *on; /* when to save: SYMBOL[+OFFSET], and expression for the console */
	bool go_on;	     /* continue after saving */
	bool trust;	     /* the resources of this host that `from` names are permitted */
};

/* Rows whose struct is run_options. */
extern const struct option_row run_snapshot_rows[];

struct run_options;
/* Returns whether --snapshot supports the option with this long name. */
bool run_options_snapshot_accepts(const char *name);
/*
 * Returns -1 if the options fit each other; else prints the reason and returns the exit status 2.
 */
int run_options_snapshot_check(const struct run_options *o);

#endif

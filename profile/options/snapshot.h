/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_options_snapshot: the options of `kvmprof run` that save a machine or go on with one.
 */
#ifndef KVMPROF_PROFILE_OPTIONS_SNAPSHOT_H
#define KVMPROF_PROFILE_OPTIONS_SNAPSHOT_H

#include <stdbool.h>

/* Part of struct run_options; NULL or false: not given. */
struct run_snapshot_options {
	const char *from;    /* the file to go on with */
	const char *save;    /* the file to write */
	const char *at, *on; /* when: SYMBOL[+OFFSET], expression for the console */
	bool go_on;	     /* after that */
};

enum {
	OPT_SNAPSHOT_FIRST = 0x600,
	OPT_SNAPSHOT = OPT_SNAPSHOT_FIRST,
	OPT_SNAPSHOT_SAVE,
	OPT_SNAPSHOT_AT,
	OPT_SNAPSHOT_ON,
	OPT_SNAPSHOT_MARKER,
	OPT_SNAPSHOT_CONTINUE,
	OPT_SNAPSHOT_END
};

#define RUN_SNAPSHOT_LONGOPTS                                                    \
	{ "snapshot", required_argument, NULL, OPT_SNAPSHOT },                   \
		{ "snapshot-save", required_argument, NULL, OPT_SNAPSHOT_SAVE }, \
		{ "snapshot-at", required_argument, NULL, OPT_SNAPSHOT_AT },     \
		{ "snapshot-on", required_argument, NULL, OPT_SNAPSHOT_ON },     \
		{ "at", required_argument, NULL, OPT_SNAPSHOT_MARKER },          \
	{                                                                        \
		"snapshot-continue", no_argument, NULL, OPT_SNAPSHOT_CONTINUE    \
	}

#define RUN_SNAPSHOT_USAGE                                                                     \
	"Snapshots:\n"                                                                         \
	"      --snapshot-save FILE  save the machine when the marker is reached, and end\n"   \
	"      --snapshot-at PLACE   the marker: this instruction, as for --start-at\n"        \
	"      --snapshot-on REGEX   the marker: a line of the console\n"                      \
	"      --at MARKER           one of the two: PLACE, or console:REGEX\n"                \
	"      --snapshot-continue   go on after saving\n"                                     \
	"      --snapshot FILE       instead of IMAGE: go on with a machine that was saved;\n" \
	"                            --disk, --net: where its disks and network are now\n"     \
	"\n"

struct run_options;
/* One of the options above. -1 to go on, or the exit status. */
int run_options_snapshot(struct run_options *o, int opt, const char *arg);
/* Does the option of this long name go with --snapshot? */
bool run_options_snapshot_takes(const char *name);
/* What fits one another. -1, or the exit status. */
int run_options_snapshot_check(const struct run_options *o);

#endif

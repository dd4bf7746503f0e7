/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/options/snapshot.h"

#include "base/cleanup.h"
#include "profile/record/options/options.h"

#include <errno.h>
#include <string.h>

#define OPTION_STRUCT struct run_options

#define CONSOLE "console:"

static int parse_marker(void *at, char *arg, struct err *e)
{
	struct run_snapshot_options *o = at;

	(void)e;
	if (!strncmp(arg, CONSOLE, strlen(CONSOLE)))
		o->on = arg + strlen(CONSOLE);
	else if (strchr(arg, ':') || !*arg)
		return -EINVAL;
	else
		o->at = arg;
	return 0;
}

const struct option_row run_snapshot_rows[] = {
	OPTION_HEADING("Snapshots:\n"),
	{ "snapshot-save", 0, "FILE", "save the machine when the marker is reached, and end",
	  OPTION_TEXT_OF(snapshot.save, "a file") },
	{ "snapshot-at", 0, "PLACE", "the marker: this instruction, as for --start-at",
	  OPTION_TEXT_OF(snapshot.at, "a place") },
	{ "snapshot-on", 0, "REGEX", "the marker: a line of the console",
	  OPTION_TEXT_OF(snapshot.on, "an expression") },
	{ "at", 0, "MARKER", "one of the two: PLACE, or console:REGEX",
	  OPTION_CALL_AT(parse_marker, snapshot, "NAME, NAME+OFFSET, 0xADDRESS or console:REGEX") },
	{ "snapshot-continue", 0, NULL, "continue after saving", OPTION_PUT(snapshot.go_on, true) },
	{ "snapshot", 0, "FILE",
	  "continue a saved machine instead of booting IMAGE;\n"
	  "give its files of this host again, by --disk,\n"
	  "--share and --net",
	  OPTION_TEXT_OF(snapshot.from, "a file") },
	{ "snapshot-trust", 0, NULL, "use the files that FILE names: only for a FILE of your own",
	  OPTION_PUT(snapshot.trust, true) },
	OPTION_HEADING("\n"),
	{ 0 },
};

/*
 * The options about the run, which may be given with --snapshot; those about the machine are in the
 * snapshot. An option that is not in this list is refused, so that none is ignored.
 */
static const char *const goes_with[] = {
	/* the host's resources for the machine */
	"hugepages", "numa", "pin",
	/* paths on this host; profile/record/run/snapshot.c checks that they fit */
	"disk", "overlay-max", "backing", "net", "share", "snapshot-trust", "guest-root",
	"debuginfo", "symbols",
	/* times, events and samples */
	"duration", "delay", "samples", "start-on", "stop-on", "start-at", "stop-at", "mark",
	"mark-at", "event", "freq", "count", "strict-event", "no-jitter", "max-overhead",
	"stack-size", "max-stack", "cpu", "ring-size", "overwrite", "control", "mem", "python",
	"off-cpu", "off-cpu-period", "on-hang", "on-panic", "hang-after",
	/* results */
	"output", "view", "no-output", "single-file", "buildid-dir", "no-buildid-cache", "json",
	"ps-at-end", "no-status", "no-summary", "sandbox", "quiet", "help",
	/* another snapshot */
	"snapshot", "snapshot-save", "snapshot-at", "snapshot-on", "at", "snapshot-continue"
};

bool run_options_snapshot_accepts(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(goes_with); i++)
		if (!strcmp(goes_with[i], name))
			return true;
	return false;
}

static int snapshot_refuse(const struct run_options *o, const char *dashes, const char *what)
{
	return run_options_wrong(o, "--snapshot restores its own machine and kernel: drop %s%s",
				 dashes, what);
}

/* Returns -1 if no option about the machine is given. */
static int check_machine(const struct run_options *o)
{
	if (o->image)
		return snapshot_refuse(o, "", "IMAGE");
	if (o->exec.nwords)
		return snapshot_refuse(o, "", "-- COMMAND");
	return o->of_machine ? snapshot_refuse(o, "--", o->of_machine) : -1;
}

int run_options_snapshot_check(const struct run_options *o)
{
	const struct run_snapshot_options *s = &o->snapshot;
	int ret = s->from ? check_machine(o) : -1;

	if (ret >= 0)
		return ret;
	if (s->trust && !s->from)
		return run_options_wrong(o, "--snapshot-trust goes with --snapshot FILE");
	if (!s->save && (s->at || s->on))
		return run_options_wrong(o, "%s says when to save: add --snapshot-save FILE",
					 s->at ? "--snapshot-at" : "--snapshot-on");
	if (!s->save && s->go_on)
		return run_options_wrong(o, "--snapshot-continue needs --snapshot-save FILE");
	if (s->save && !s->at && !s->on)
		return run_options_wrong(
			o, "--snapshot-save %s: say when, by --snapshot-at or --snapshot-on",
			s->save);
	if (s->at && s->on)
		return run_options_wrong(o,
					 "--snapshot-at and --snapshot-on: give only one of them");
	return -1;
}

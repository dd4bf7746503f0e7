/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/options/snapshot.h"

#include "base/cleanup.h"
#include "profile/options/options.h"

#include <string.h>

#define CONSOLE "console:"

static int take_marker(struct run_options *o, const char *arg)
{
	const char *colon = strchr(arg, ':');

	if (!strncmp(arg, CONSOLE, strlen(CONSOLE)))
		o->snapshot.on = arg + strlen(CONSOLE);
	else if (colon || !*arg)
		return run_options_wrong(
			o, "--at %s: expected SYMBOL, SYMBOL+OFFSET, 0xADDRESS or console:REGEX",
			arg);
	else
		o->snapshot.at = arg;
	return -1;
}

int run_options_snapshot(struct run_options *o, int opt, const char *arg)
{
	switch (opt) {
	case OPT_SNAPSHOT:
		o->snapshot.from = arg;
		break;
	case OPT_SNAPSHOT_SAVE:
		o->snapshot.save = arg;
		break;
	case OPT_SNAPSHOT_AT:
		o->snapshot.at = arg;
		break;
	case OPT_SNAPSHOT_ON:
		o->snapshot.on = arg;
		break;
	case OPT_SNAPSHOT_MARKER:
		return take_marker(o, arg);
	default: /* OPT_SNAPSHOT_CONTINUE */
		o->snapshot.go_on = true;
		return -1;
	}
	return *arg ? -1 : run_options_wrong(o, "an option of snapshots has an empty value");
}

/*
 * What is about the run and not about the machine, which the snapshot has already: these go
 * with --snapshot. An option that is not here is refused beside it, so that none can be
 * given in vain.
 */
static const char *const goes_with[] = {
	/* what the host does for the machine */
	"hugepages", "numa", "pin",
	/* where things are on this host; run_snapshot.c checks that they fit */
	"disk", "net", "guest-root", "debuginfo", "symbols",
	/* when, what and how */
	"duration", "delay", "samples", "start-on", "stop-on", "start-at", "stop-at", "mark",
	"mark-at", "event", "freq", "count", "strict-event", "no-jitter", "max-overhead",
	"stack-size", "max-stack", "cpu", "ring-size", "overwrite", "control", "mem", "off-cpu",
	"off-cpu-period",
	/* results */
	"output", "single-file", "buildid-dir", "no-buildid-cache", "json", "ps-at-end",
	"no-status", "quiet", "help",
	/* and another one */
	"snapshot", "snapshot-save", "snapshot-at", "snapshot-on", "at", "snapshot-continue"
};

bool run_options_snapshot_takes(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(goes_with); i++)
		if (!strcmp(goes_with[i], name))
			return true;
	return false;
}

static int refuse(const struct run_options *o, const char *dashes, const char *what)
{
	return run_options_wrong(o, "--snapshot has its machine and kernel already: drop %s%s",
				 dashes, what);
}

/* -1: nothing of the machine is given beside it. */
static int check_machine(const struct run_options *o)
{
	const char *name;

	if (o->image)
		return refuse(o, "", "IMAGE");
	if (o->exec.nwords)
		return refuse(o, "", "-- COMMAND");
	for (unsigned int i = 0; (name = run_options_name(i)); i++)
		if (o->given[i] && !run_options_snapshot_takes(name))
			return refuse(o, "--", name);
	return -1;
}

int run_options_snapshot_check(const struct run_options *o)
{
	const struct run_snapshot_options *s = &o->snapshot;
	int ret = s->from ? check_machine(o) : -1;

	if (ret >= 0)
		return ret;
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
					 "--snapshot-at and --snapshot-on: one of them is enough");
	return -1;
}

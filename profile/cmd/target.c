/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/target.h"

#include "profile/cmd/common.h"
#include "profile/record/control/path.h"
#include "vmm/snapshot/snapshot.h"

#include <getopt.h>
#include <stddef.h>
#include <stdio.h>

#define OPTION_STRUCT struct cmd_target

const struct option_row cmd_target_rows[] = {
	OPTION_ROWS(cmd_attach_rows, attach),
	{ "gdb", 0, "HOST:PORT", "through a gdbstub, of QEMU without KVM or others",
	  OPTION_TEXT_OF(gdb, "HOST:PORT") },
	{ "snapshot", 0, "FILE", "a machine that was saved (run --snapshot-save); it does not run",
	  OPTION_TEXT_OF(still, "a snapshot") },
	{ "control", 0, "PATH", "of a run: its socket; auto: the only run with --control auto",
	  OPTION_TEXT_OF(control, "a path") },
	{ 0 },
};

/* Finds the process of a run. Returns -1 to continue, or the exit status after a message. */
static int target_find_run(struct cmd_target *t, char **argv)
{
	struct err e = { 0 };
	pid_t pid;

	if (control_run_of(t->control, &pid, &e)) {
		fprintf(stderr, "kvmprof %s: %s\n", argv[0], e.text);
		return 1;
	}
	snprintf(t->run, sizeof(t->run), "%d", (int)pid);
	t->attach.what = t->run;
	t->attach.way = ATTACH_PID;
	return -1;
}

int cmd_target_parse(struct cmd_target *t, int argc, char **argv)
{
	const struct attach_request *a = &t->attach;

	if (!t->gdb && !t->still && !a->what && !a->uri && optind < argc &&
	    snapshot_is_file(argv[optind]))
		t->still = argv[optind++];
	if (!!t->gdb + !!t->still + !!t->control > 1)
		return cmd_wrong(argv, "give one of --gdb, --snapshot and --control");
	if (t->control && optind >= argc && !a->what && !a->uri)
		return target_find_run(t, argv);
	if (!t->gdb && !t->still && !t->control)
		return cmd_attach_parse(&t->attach, argc, argv, ", --gdb, --snapshot, --control");
	if (optind < argc || a->what || a->uri)
		return cmd_wrong_usage(
			argv,
			"give one of a PID, a domain, --gdb, --snapshot and --control; unexpected",
			optind < argc ? argv[optind]
			: a->what     ? a->what
				      : a->uri);
	return -1;
}

void cmd_target_visit(const struct cmd_target *t, struct visit_request *q)
{
	q->what = &t->attach;
	q->gdb = t->gdb;
	q->still = t->still;
}

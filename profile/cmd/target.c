/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/target.h"

#include "profile/cmd/common.h"
#include "vmm/snapshot/snapshot.h"

#include <getopt.h>
#include <stddef.h>

#define OPTION_STRUCT struct cmd_target

const struct option_row cmd_target_rows[] = {
	OPTION_ROWS(cmd_attach_rows, attach),
	{ "gdb", 0, "HOST:PORT", "through a gdbstub, of QEMU without KVM or others",
	  OPTION_TEXT_OF(gdb, "HOST:PORT") },
	{ "snapshot", 0, "FILE", "a machine that was saved (run --snapshot-save); it does not run",
	  OPTION_TEXT_OF(still, "a snapshot") },
	{ 0 },
};

int cmd_target_parse(struct cmd_target *t, int argc, char **argv)
{
	const struct attach_request *a = &t->attach;

	if (!t->gdb && !t->still && !a->what && !a->uri && optind < argc &&
	    snapshot_is_file(argv[optind]))
		t->still = argv[optind++];
	if (t->gdb && t->still)
		return cmd_wrong(argv, "--gdb or --snapshot, not both");
	if (!t->gdb && !t->still)
		return cmd_attach_parse(&t->attach, argc, argv, ", --gdb, --snapshot");
	if (optind < argc || a->what || a->uri)
		return cmd_wrong_usage(
			argv, "give one of a PID, a domain, --gdb and --snapshot; unexpected",
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

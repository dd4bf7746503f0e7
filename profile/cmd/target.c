/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/target.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "profile/cmd/common.h"

#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define OPTION_STRUCT struct cmd_target

const struct option_row cmd_target_rows[] = {
	OPTION_AS("connect", NULL, cmd_attach_rows, attach),
	OPTION_AS("pid", "this process's guest", cmd_attach_rows, attach),
	OPTION_AS("domain", "this domain's", cmd_attach_rows, attach),
	OPTION_AS("name", "of the machine that its VMM's command line calls so", cmd_attach_rows,
		  attach),
	{ "gdb", 0, "HOST:PORT", "through a gdbstub, of QEMU without KVM or others",
	  OPTION_TEXT_OF(gdb, "HOST:PORT") },
	{ "snapshot", 0, "FILE", "a machine that was saved (run --snapshot-save); it does not run",
	  OPTION_TEXT_OF(still, "a snapshot") },
	{ 0 },
};

/* Returns whether a word is the path of a snapshot, by its first bytes (vmm/snapshot/snapshot.h). */
static bool is_snapshot(const char *path)
{
	static const char magic[] = "KVMPSNAP";
	char head[sizeof(magic) - 1];
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	return fd >= 0 && read(fd, head, sizeof(head)) == (ssize_t)sizeof(head) &&
	       !memcmp(head, magic, sizeof(head));
}

int cmd_target_parse(struct cmd_target *t, int argc, char **argv)
{
	struct err e = { 0 };

	if (!t->gdb && !t->still && !t->attach.what && !t->attach.uri && optind < argc &&
	    is_snapshot(argv[optind]))
		t->still = argv[optind++];
	if (t->gdb && t->still)
		return cmd_wrong(argv, "--gdb or --snapshot, not both");
	if (t->still && (optind < argc || t->attach.what || t->attach.uri))
		return cmd_wrong_usage(argv,
				       "a PID, a domain or --snapshot, one of them; unexpected",
				       optind < argc	? argv[optind]
				       : t->attach.what ? t->attach.what
							: t->attach.uri);
	if (t->gdb && (optind < argc || t->attach.what || t->attach.uri))
		return cmd_wrong_usage(argv, "a PID, a domain or --gdb, one of them; unexpected",
				       optind < argc	? argv[optind]
				       : t->attach.what ? t->attach.what
							: t->attach.uri);
	if (optind < argc && cmd_attach_set(&t->attach, ATTACH_GUESS, argv[optind++], &e))
		return cmd_wrong(argv, e.text);
	if (optind < argc)
		return cmd_wrong_usage(argv, "unexpected argument", argv[optind]);
	if (!t->gdb && !t->still && !t->attach.what)
		return cmd_wrong(argv,
				 "which machine? Give a PID, a libvirt domain, --name, --gdb or "
				 "--snapshot; "
				 "`kvmprof list --machines` lists them");
	if ((t->attach.way == ATTACH_PID || t->attach.way == ATTACH_NAME) && t->attach.uri)
		return cmd_wrong_usage(argv, "--connect doesn't go with --pid or --name",
				       t->attach.what);
	return -1;
}

void cmd_target_visit(const struct cmd_target *t, struct visit_request *q)
{
	q->what = &t->attach;
	q->gdb = t->gdb;
	q->still = t->still;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_target: the machine that a command examines: the one of another VMM's process or domain, one
 * of a run, one behind a gdbstub, or a saved one. Only the main thread calls these functions.
 */
#ifndef KVMPROF_PROFILE_CMD_TARGET_H
#define KVMPROF_PROFILE_CMD_TARGET_H

#include "base/option.h"
#include "profile/record/libvirt/attach_domain.h"
#include "profile/record/run/visit.h"

struct cmd_target {
	struct attach_request attach;
	const char *gdb;     /* HOST:PORT; NULL: none */
	const char *still;   /* path of a snapshot; NULL: none */
	const char *control; /* control socket of a run; NULL: none */
	char run[16];	     /* the PID of that run */
};

/* The options of all ways to name a machine, for OPTION_ROWS() with a struct cmd_target. */
extern const struct option_row cmd_target_rows[];

/*
 * Takes the word behind the options as the machine or the snapshot, if there is one. The caller has
 * called cmd_options(). Returns -1 to continue, or the exit status after a message.
 */
int cmd_target_parse(struct cmd_target *t, int argc, char **argv);
/* Copies the machine to the request of a visit, which borrows *t. */
void cmd_target_visit(const struct cmd_target *t, struct visit_request *q);

#endif

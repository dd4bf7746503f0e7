/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_target: which machine a command looks at: another VMM's process or domain, or a gdbstub.
 * Called by the main thread only.
 */
#ifndef KVMPROF_PROFILE_CMD_TARGET_H
#define KVMPROF_PROFILE_CMD_TARGET_H

#include "base/option.h"
#include "profile/record/libvirt/attach_domain.h"
#include "profile/record/run/visit.h"

struct cmd_target {
	struct attach_request attach;
	const char *gdb;   /* HOST:PORT; NULL: none */
	const char *still; /* a snapshot; NULL: none */
};

/* Rows for struct cmd_target, to be included by OPTION_ROWS. */
extern const struct option_row cmd_target_rows[];

/*
 * Takes the word behind the options, if there is one. Call it after cmd_options(). Returns -1 to
 * continue, or the exit status after a line on standard error.
 */
int cmd_target_parse(struct cmd_target *t, int argc, char **argv);
/* Sets which machine is visited. The target must outlive the visit. */
void cmd_target_visit(const struct cmd_target *t, struct visit_request *q);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_top_guest: a `kvmprof run` of our own, started for a live view.
 *
 * It is told to listen on a socket in a directory of its own; what it says goes to a
 * file there, and is shown when the view has gone. One thread.
 */
#ifndef KVMPROF_PROFILE_CMD_TOP_GUEST_H
#define KVMPROF_PROFILE_CMD_TOP_GUEST_H

#include "base/err.h"
#include "profile/record/control/client.h"

#include <stdbool.h>
#include <sys/types.h>

struct top_guest {
	pid_t pid;  /* 0: none */
	int status; /* of waitpid(), when it has ended */
	char dir[64], socket[80], log[80];
};

/* args: options of `run` and the image, argc of them. */
int top_guest_start(struct top_guest *g, int argc, char **args, struct err *e);
/* Wait until it listens; -ECHILD: it has ended without. */
int top_guest_connect(struct top_guest *g, struct control_client **out, struct err *e);
/* A signal ends it as Ctrl-C does; waits until it has ended. */
void top_guest_end(struct top_guest *g);
/* Its exit status, or 1 when it was killed. After top_guest_end(). */
int top_guest_exit_status(const struct top_guest *g);
/* Remove what was left behind; ends it first. */
void top_guest_deinit(struct top_guest *g);

#endif

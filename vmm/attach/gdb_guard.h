/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gdb_guard: lets the machine behind a gdbstub go on when we die.
 *
 * QEMU leaves a machine stopped that was stopped when the connection closed. So a small
 * process of its own shares the socket and waits: when kvmprof has gone without a word, in
 * whichever way, it detaches in its place. It is in a session of its own, so that a signal to
 * kvmprof's process group does not take it along. It ends within seconds, whatever the stub does.
 */
#ifndef KVMPROF_VMM_ATTACH_GDB_GUARD_H
#define KVMPROF_VMM_ATTACH_GDB_GUARD_H

#include "base/err.h"

#include <sys/types.h>

struct gdb_guard {
	pid_t pid;   /* 0: none */
	int pipe_fd; /* that it waits at */
};

/* Watch over this connection. */
int gdb_guard_start(struct gdb_guard *g, int socket_fd, struct err *e);
/* The guard's last action. */
enum gdb_guard_end {
	GDB_GUARD_DETACHES,
	GDB_GUARD_DOES_NOTHING, /* the connection was ended in order */
};
/* Not started is fine. */
void gdb_guard_stop(struct gdb_guard *g, enum gdb_guard_end end);

#endif

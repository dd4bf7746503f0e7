/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gdb_guard: resumes the machine behind a gdbstub if kvmprof dies.
 *
 * QEMU leaves a machine stopped that was stopped when the connection was closed. Therefore a small
 * process shares the socket and waits: if kvmprof ends in whichever way without stopping its guard,
 * the guard detaches in its place. It runs in a session of its own, so that a signal to kvmprof's
 * process group does not end it. It ends within seconds, whatever the stub does.
 */
#ifndef KVMPROF_VMM_ATTACH_GDB_GUARD_H
#define KVMPROF_VMM_ATTACH_GDB_GUARD_H

#include "base/err.h"

#include <sys/types.h>

struct gdb_guard {
	pid_t pid;   /* 0: none */
	int pipe_fd; /* end of the pipe on which the guard waits; -1: none */
};

/*
 * Starts the guard of the connection socket_fd. gdb_guard_stop() ends it. Returns 0 or -errno; *g
 * is then as if it was not started.
 */
int gdb_guard_start(struct gdb_guard *g, int socket_fd, struct err *e);
/* The guard's last action. */
enum gdb_guard_end {
	GDB_GUARD_DETACHES,
	GDB_GUARD_DOES_NOTHING, /* the connection was ended in order */
};
/* Ends the guard, and waits for that for at most a second. Does nothing if it was not started. */
void gdb_guard_stop(struct gdb_guard *g, enum gdb_guard_end end);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * launch: starts a VMM as a child of kvmprof: `kvmprof attach -- VMM ARGUMENTS`.
 *
 * A small process, kvmprof-launch, is the parent of the VMM and adopts processes that its jailers
 * leave behind. It reports how these end, and ends them on request when kvmprof itself has given up
 * its rights. The VMM waits for its tracer before execve(2). It gets the terminal's signals,
 * standard input and standard error of kvmprof. If kvmprof dies, the VMM continues. The main thread
 * calls these functions.
 */
#ifndef KVMPROF_VMM_ATTACH_LAUNCH_H
#define KVMPROF_VMM_ATTACH_LAUNCH_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Time that a VMM has after SIGTERM. */
#define LAUNCH_GRACE_MS 2000u

struct launch {
	/* kvmprof-launch, and the process that becomes the VMM or its jailer; 0: none */
	pid_t parent, child;
	int link; /* to kvmprof-launch; -1: none */
	int out;  /* the VMM's standard output, for kvmprof to read; -1: it has kvmprof's own */
};

/* The destination of the VMM's standard output. */
enum launch_output {
	LAUNCH_INHERIT,
	LAUNCH_READ,	  /* l->out */
	LAUNCH_TO_STDERR, /* standard output has something else */
};

/*
 * Starts the VMM, which waits until it is traced. argv ends with NULL. launch_close() must follow,
 * also after an error. Returns 0, or -errno if no process or pipe can be made. If the program
 * itself cannot be executed, launch_failed() reports that later.
 */
int launch_start(struct launch *l, char *const *argv, enum launch_output output, struct err *e);
/*
 * Returns whether argv could not be executed. It then replaces *e by the reason; name: the program,
 * for the message. Waits at most a second for the report if the process has ended.
 */
bool launch_failed(struct launch *l, const char *name, struct err *e);
/*
 * Waits at most `ms` milliseconds for the end of the VMM. Returns whether it has ended, with
 * wait(2)'s status in *status. pid: the process of the VMM, if a jailer started it; 0: the process
 * that was started.
 */
bool launch_wait(struct launch *l, pid_t pid, unsigned int ms, int *status);
/*
 * Ends the VMM: sends SIGTERM, and SIGKILL after LAUNCH_GRACE_MS. Waits for its end, at most twice
 * as long. pid: as in launch_wait(); for 0, kvmprof-launch also ends all processes that the VMM has
 * started once launch_close() is called.
 */
void launch_end(struct launch *l, pid_t pid);
/*
 * Closes the connection to kvmprof-launch, which then ends, and l->out. The VMM continues unless
 * launch_end() was called.
 */
void launch_close(struct launch *l);

#endif

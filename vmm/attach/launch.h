/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * launch: a VMM that kvmprof starts: `kvmprof attach -- VMM ARGUMENTS`.
 *
 * A small process, kvmprof-launch, is the parent of the VMM and adopts what its jailers leave behind. It knows how these end, and ends them
 * if it is asked to, when kvmprof itself has no rights any more. The VMM waits for its tracer before execve(2). It has the terminal's
 * signals, standard input and standard error of kvmprof. If kvmprof dies, the VMM goes on.
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

/* Starts the VMM, which waits until it is traced. argv ends with NULL. Returns 0, or -errno if it cannot be executed. For launch_close(). */
int launch_start(struct launch *l, char *const *argv, enum launch_output output, struct err *e);
/* Returns whether it could not be executed, with the reason in *e in place of what is there. */
bool launch_failed(struct launch *l, const char *name, struct err *e);
/*
 * Returns whether the VMM has ended, with wait(2)'s status in *status. pid: the process of the VMM, whose status counts where a jailer
 * started it; 0: the first process.
 */
bool launch_wait(struct launch *l, pid_t pid, unsigned int ms, int *status);
/* Ends the VMM: SIGTERM, and SIGKILL after LAUNCH_GRACE_MS. */
void launch_end(struct launch *l, pid_t pid);
void launch_close(struct launch *l);

#endif

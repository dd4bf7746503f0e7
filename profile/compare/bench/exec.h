/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench_exec: one run of a bench, as a process that is watched.
 *
 * The child is in a process group of its own (a Ctrl-C on the terminal is the bench's to
 * handle), is pinned before it starts, has no input, writes what it says to a log, and gets
 * SIGTERM should this process die. Main thread: the child's death signal follows the thread.
 */
#ifndef KVMPROF_PROFILE_COMPARE_BENCH_EXEC_H
#define KVMPROF_PROFILE_COMPARE_BENCH_EXEC_H

#include "base/err.h"

#include <sched.h>
#include <stdint.h>

enum bench_end {
	BENCH_FINE,	   /* status 0 */
	BENCH_FAILED,	   /* another status */
	BENCH_KILLED,	   /* by a signal */
	BENCH_TIMED_OUT,   /* ended after timeout_s */
	BENCH_INTERRUPTED, /* ended because stop_fd got readable */
};

struct bench_exec {
	char *const *argv;    /* argv[0] is a path, PATH is not searched; NULL at the end */
	const char *log;      /* created, or emptied */
	const cpu_set_t *pin; /* NULL: as this process */
	double timeout_s;     /* more than 0 */
	int stop_fd;	      /* readable: end the child; -1: never */
	/* Time that a child has after SIGTERM. A killed one leaves what it has started itself. */
	int grace_ms;
};

struct bench_outcome {
	enum bench_end end;
	int status; /* exit status, or the signal */
	double seconds;
};

/*
 * Runs the child and waits until it has ended, with any result. Returns 0, or -errno if it could
 * not be started.
 */
int bench_exec(const struct bench_exec *x, struct bench_outcome *out, struct err *e);

/* Writes "exit status 3", "signal 11", "no end in time" and so on. */
void bench_outcome_text(const struct bench_outcome *o, char text[64]);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench_exec: runs one run of a bench as a child process with a time limit.
 *
 * The child is in a process group of its own (only the bench handles a Ctrl-C on the terminal), is
 * pinned before it starts, has no input, writes its output to a log, and receives SIGTERM if this
 * process dies. Called by the main thread: the parent-death signal is bound to the thread that
 * forked.
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
	BENCH_INTERRUPTED, /* ended because stop_fd became readable */
};

struct bench_exec {
	char *const *argv;    /* argv[0] is a path, PATH is not searched; NULL at the end */
	const char *log;      /* path; the file is created, or emptied */
	const cpu_set_t *pin; /* NULL: the CPUs of this process */
	double timeout_s;     /* more than 0 */
	int stop_fd;	      /* readable: end the child; -1: never */
	/* Time that a child has after SIGTERM. A killed one leaves what it has started itself. */
	int grace_ms;
};

struct bench_outcome {
	enum bench_end end;
	int status;	/* exit status, or the number of the signal */
	double seconds; /* from the start to the end of the child */
};

/*
 * Runs the child and waits until it has ended, with any result. Returns 0, or -errno if it could
 * not be started.
 */
int bench_exec(const struct bench_exec *x, struct bench_outcome *out, struct err *e);

/* Writes "exit status 3", "ended by signal 11", "no end after 60 s" and so on. */
void bench_outcome_text(const struct bench_outcome *o, char text[64]);

#endif

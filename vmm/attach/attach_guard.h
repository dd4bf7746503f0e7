/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attach_guard: a small process that releases the machine when the tracer's thread hangs or is
 * stopped.
 *
 * A process gets no notice of SIGSTOP nor of the cgroup freezer, and a thread that reads a page
 * which never arrives cannot react to anything. The threads that it traces then stay stopped, or
 * stop at their next signal. Therefore the tracer's thread counts beats in a page that it shares
 * with the guard, which checks them ten times a second. The guard counts checks since the last beat
 * instead of time, because both processes may have had no processor. It kills the tracer's process
 * when the thread slept or was stopped at ATTACH_GUARD_LOOKS of these checks, when there were
 * ATTACH_GUARD_LOOKS_RUNNABLE checks without those at which it waited for a processor, or when
 * there were ATTACH_GUARD_LOOKS_LATE in all. The kernel then detaches from all threads that the
 * process traced, and their system calls begin anew (tracer.h). The guard runs in a session of its
 * own, and leaves a cgroup (version 2) that could be frozen, if it has the right to do so.
 */
#ifndef KVMPROF_VMM_ATTACH_ATTACH_GUARD_H
#define KVMPROF_VMM_ATTACH_ATTACH_GUARD_H

#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The page that the guard shares with kvmprof. The guard uses it only to decide about its own
 * parent.
 */
struct attach_guard_page {
	_Atomic uint64_t beats;
	_Atomic pid_t tracer; /* the thread that counts them; 0: it traces nothing */
};

/*
 * The thread counts as stuck after this many checks without a beat at which it slept or was
 * stopped.
 */
#define ATTACH_GUARD_LOOKS 10u
/* The same limit for all checks but those at which it was late. It may be in an endless loop. */
#define ATTACH_GUARD_LOOKS_RUNNABLE 50u
/*
 * The same limit for all checks. A tracer that waits for a processor is only late. The guard is in
 * a session of its own (sched(7), autogroup), so that it may run while the tracer's session gets no
 * processor for seconds.
 */
#define ATTACH_GUARD_LOOKS_LATE 300u
/* It is not known how long the thread was on a processor. */
#define ATTACH_GUARD_RAN_UNKNOWN UINT64_MAX

/* The checks of the guard since the last beat. */
struct attach_guard_looks {
	unsigned int all, asleep; /* asleep: those at which the thread was not runnable */
	unsigned int late;	  /* those before which it was runnable and got no processor */
	uint64_t ran_ns;	  /* its time on processors at the last check */
};

/*
 * Counts a check without a beat of the tracer's thread. state is the thread's state (proc(5),
 * stat), or 0 if it has ended. ran_ns is its time on processors (schedstat), or
 * ATTACH_GUARD_RAN_UNKNOWN. Returns whether the thread is stuck. A single check does not decide
 * this: a thread that got no processor for long may be asleep at that moment.
 */
bool attach_guard_look(struct attach_guard_looks *l, char state, uint64_t ran_ns);

struct attach_guard {
	pid_t pid;   /* 0: none */
	int pipe_fd; /* the guard ends when this is closed */
	struct attach_guard_page *page;
};

/*
 * Starts the guard of this process. attach_guard_stop() ends it, also after an error. Called by the
 * thread that opens the machine, before the tracer's thread exists. Returns 0 or -errno.
 */
int attach_guard_start(struct attach_guard *g, struct err *e);
/*
 * Ends the guard, waits at most a second for that, and frees its page. Does nothing if it was not
 * started, with pipe_fd -1. Called by the thread that destroys the machine, after the tracer's
 * thread has ended.
 */
void attach_guard_stop(struct attach_guard *g);

/*
 * Makes the guard watch the calling thread, which must call attach_guard_beat() several times a
 * second from now on. Watching ends with the thread, or with attach_guard_unwatch().
 */
void attach_guard_watch(struct attach_guard *g);
/* Ends what attach_guard_watch() began. Called by the thread that is watched. */
void attach_guard_unwatch(struct attach_guard *g);

/* Reports to the guard that the tracer's thread makes progress. Does nothing without a guard. */
static inline void attach_guard_beat(struct attach_guard *g)
{
	if (g->page)
		atomic_fetch_add_explicit(&g->page->beats, 1, memory_order_relaxed);
}

#endif

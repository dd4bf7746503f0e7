/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attach_guard: a small process that releases the machine when the tracer's thread does not go on.
 *
 * A process gets no notice of SIGSTOP, nor of the cgroup freezer, and one that reads a page which never comes gets nothing
 * at all. Threads that it traces then stay stopped, or stop at their next signal. The tracer's thread counts beats in a page
 * that it shares with the guard, which looks at them ten times a second. Looks since the last beat are counted, and not time: both
 * may have had no processor. When the thread slept or was stopped at ATTACH_GUARD_LOOKS of them, or when there were
 * ATTACH_GUARD_LOOKS_RUNNABLE in all, the guard kills the tracer's process: the kernel detaches from all threads that it traced, and
 * what they waited in begins anew (tracer.h). The guard is in a session of its own, and leaves a cgroup (version 2) that could be frozen
 * if it may.
 */
#ifndef KVMPROF_VMM_ATTACH_ATTACH_GUARD_H
#define KVMPROF_VMM_ATTACH_ATTACH_GUARD_H

#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Shared with the guard, which believes nothing of it beyond its own parent's fate. */
struct attach_guard_page {
	_Atomic uint64_t beats;
	_Atomic pid_t tracer; /* the thread that counts them; 0: it traces nothing */
};

/* Looks without a beat at which the tracer slept or was stopped, after which it counts as stuck. */
#define ATTACH_GUARD_LOOKS 10u
/* All looks without a beat: a tracer that waits for a processor is only late, so it is given longer. */
#define ATTACH_GUARD_LOOKS_RUNNABLE 50u

/* Looks of the guard since the last beat. */
struct attach_guard_looks {
	unsigned int all, asleep; /* asleep: those at which the thread was not runnable */
};

/*
 * Counts a look without a beat at the tracer's thread. state: its state (proc(5), stat), or 0 if it has ended. Returns whether
 * the thread is stuck. A single look does not decide: a thread that got no processor for long may sleep at that moment.
 */
bool attach_guard_look(struct attach_guard_looks *l, char state);

struct attach_guard {
	pid_t pid;   /* 0: none */
	int pipe_fd; /* the guard ends when this is closed */
	struct attach_guard_page *page;
};

/* Starts the guard of this process. */
int attach_guard_start(struct attach_guard *g, struct err *e);
/* Ends it. A guard that was not started is fine. */
void attach_guard_stop(struct attach_guard *g);

/*
 * Begins to watch the calling thread, which beats several times a second from now on. Watching ends with the thread, or with
 * attach_guard_unwatch().
 */
void attach_guard_watch(struct attach_guard *g);
void attach_guard_unwatch(struct attach_guard *g);

static inline void attach_guard_beat(struct attach_guard *g)
{
	if (g->page)
		atomic_fetch_add_explicit(&g->page->beats, 1, memory_order_relaxed);
}

#endif

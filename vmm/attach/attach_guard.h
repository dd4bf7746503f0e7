/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attach_guard: a small process that releases the machine when the tracer's thread does not go on.
 *
 * A process gets no notice of SIGSTOP, nor of the cgroup freezer, and one that reads a page which never comes gets nothing
 * at all. Threads that it traces then stay stopped, or stop at their next signal. The tracer's thread counts beats in a page
 * that it shares with the guard. When there is none for a second in which the thread sleeps, or for five in which it waits for
 * a processor, the guard kills the tracer's process: the kernel detaches from all threads that it traced, and what they
 * waited in begins anew (tracer.h). The guard is in a session of its own, and leaves a cgroup (version 2) that could be frozen
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

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * host_side: what a run with the event host reads about the host besides its vCPUs: names, switches
 * of processors, and the VMM's other threads. All functions are called by the main thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_HOST_SIDE_H
#define KVMPROF_PROFILE_RECORD_RUN_HOST_SIDE_H

#include "base/err.h"
#include "profile/record/host/host_names.h"

#include <stdbool.h>

struct host_switches;
struct host_threads;
struct run;

/* All zero if the run does not have the event host. */
struct run_host {
	bool has;			/* the run has the event host */
	struct host_names names;	/* names of the host's functions */
	struct host_switches *switches; /* switches of the host's processors; NULL: not reported, */
	struct err switches_why;	/* for this reason */
	/* threads of the VMM that run no vCPU; NULL: they are not sampled, */
	struct host_threads *threads;
	struct err threads_note; /* or not completely, for this reason */
};

/*
 * Opens names and switches, once the events are known and while the process has the rights. Does
 * nothing without the event host. A failure is noted in r->host_side.
 */
void run_host_open(struct run *r);
/* Closes all of it, after pipeline_destroy(). */
void run_host_close(struct run *r);

/* Adds the event of the VMM's other threads behind all others. Returns 0 or -ENOMEM. */
int run_host_add_event(struct run *r, struct err *e);
/*
 * Starts to count the VMM's other threads, once all threads exist and while the process has the
 * rights. Threads that cannot be counted are noted in r->host_side.
 */
void run_host_threads(struct run *r);

#endif

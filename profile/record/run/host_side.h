/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * host_side: what a run with the event host reads of the host beside its vCPUs: names, who had a processor, and the VMM's
 * other threads. All calls come from the main thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_HOST_SIDE_H
#define KVMPROF_PROFILE_RECORD_RUN_HOST_SIDE_H

#include "base/err.h"
#include "profile/record/host/host_names.h"

#include <stdbool.h>

struct host_switches;
struct host_threads;
struct run;

/* All zero without the event host. */
struct run_host {
	bool has;			/* the event host is one of them */
	struct host_names names;	/* of the functions of the host */
	struct host_switches *switches; /* who had a processor; NULL: it is not reported, ... */
	struct err switches_why;	/* ... because of this */
	struct host_threads
		*threads;	 /* the VMM's that run no vCPU; NULL: they are not sampled, ... */
	struct err threads_note; /* ... or not wholly, because of this */
};

/* As long as we have the rights to: once its events are known. Does nothing where host is none of them. */
void run_host_open(struct run *r);
void run_host_close(struct run *r);

/* The VMM's other threads are an event of the profile, behind all others. -ENOMEM. */
int run_host_add_event(struct run *r, struct err *e);
/* And they are counted from now on: all threads are there, and the right to is. What is not to be had is noted. */
void run_host_threads(struct run *r);

#endif

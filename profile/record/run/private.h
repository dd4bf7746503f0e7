/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * private: shared by control.c and control_status.c. Functions are called by the server's thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_PRIVATE_H
#define KVMPROF_PROFILE_RECORD_RUN_PRIVATE_H

#include "profile/record/control/server.h"
#include "profile/record/pipeline/pipeline.h"
#include "profile/record/run/run.h"
#include "profile/record/run/control.h"

#include <pthread.h>
#include <stdatomic.h>

/* A change that a request made. */
struct control_change {
	uint64_t time_ns;
	const char *what;
	int event, vcpu; /* -1: none */
	bool is_switch;	 /* `from` and `to` are 0 or 1 */
	uint64_t from, to;
};

struct run_control {
	struct control_listener listener;
	struct control_server *server; /* NULL: not started, or stopped */
	struct run *run;
	pthread_mutex_t lock; /* protects change and nchanges, which the server's thread writes */
	struct control_change change[RUN_CONTROL_MAX_CHANGES];
	uint64_t nchanges; /* includes those that were not recorded */
	/* start of the request that is carried out; used by the server's thread */
	uint64_t request_ns;
	uint32_t stack_size, max_stack;
	atomic_uint snapshots;
	int statm; /* /proc/self/statm; -1: unavailable */
	/* The number of samples at the last two ticks. */
	struct {
		uint64_t time_ns, samples;
	} before, last;
	atomic_bool gone; /* the consumer thread has crashed */
	/* The request that the consumer thread works on; there is at most one. */
	struct pipeline_job job;
	struct control_request request;
	struct buf reply;
	bool wrote;		     /* a complete profile was written, */
	struct run_keep_entry entry; /* with this temporary name, if the run has a keeper */
};

/* Return the number of samples of all vCPUs so far, and of lost ones. */
uint64_t run_control_samples(const struct run_control *c);
uint64_t run_control_lost(const struct run_control *c);

/*
 * Returns the number of the machine's events, which come first in the profile; off-cpu and others
 * follow.
 */
unsigned int run_control_events(const struct run_control *c);

/* The unit of vm_period() of an event. */
enum control_unit {
	CONTROL_COUNT,
	CONTROL_NS,
	CONTROL_HZ, /* the kernel adjusts the period to this many samples per second */
};
/* Returns the unit of the period of the machine's event with this index. */
enum control_unit run_control_unit(const struct run_control *c, unsigned int event);
/* Returns a static string. */
const char *run_control_unit_name(enum control_unit unit);

/* Write the members of a reply into the JSON object that is open in *w; in control_status.c. */
void run_control_put_status(struct run_control *c, struct json_writer *w);
void run_control_put_stats(struct run_control *c, struct json_writer *w);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * private: what control.c and control_status.c share. On the server's thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_PRIVATE_H
#define KVMPROF_PROFILE_RECORD_RUN_PRIVATE_H

#include "profile/record/control/server.h"
#include "profile/record/pipeline/pipeline.h"
#include "profile/record/run/run.h"
#include "profile/record/run/control.h"

#include <pthread.h>
#include <stdatomic.h>

struct control_change {
	uint64_t time_ns;
	const char *what;
	int event, vcpu; /* -1: of none */
	bool is_switch;	 /* from and to are false or true */
	uint64_t from, to;
};

struct run_control {
	struct control_listener listener;
	struct control_server *server; /* NULL: not started, or stopped */
	struct run *run;
	pthread_mutex_t lock; /* of change and nchanges; written by the server's thread */
	struct control_change change[RUN_CONTROL_MAX_CHANGES];
	uint64_t nchanges;   /* also those that found no place */
	uint64_t request_ns; /* when the request that is carried out began; the server's thread */
	uint32_t stack_size, max_stack;
	atomic_uint snapshots;
	int statm; /* /proc/self/statm; -1: not there */
	/* How many samples there were at the last two ticks. */
	struct {
		uint64_t time_ns, samples;
	} before, last;
	atomic_bool gone; /* the consumer's thread has crashed */
	/* The one request that the consumer works on. */
	struct pipeline_job job;
	struct control_request request;
	struct buf reply;
	bool wrote;		     /* a profile, which is complete and has ... */
	struct run_keep_entry entry; /* ... this name yet, if the run has a keeper */
};

/* Samples in all, lost ones. */
uint64_t run_control_samples(const struct run_control *c);
uint64_t run_control_lost(const struct run_control *c);

/* Events of the machine, which come first; behind them may be off-cpu. */
unsigned int run_control_events(const struct run_control *c);

/* What vm_period() of an event is in. */
enum control_unit {
	CONTROL_COUNT,
	CONTROL_NS,
	CONTROL_HZ, /* the kernel chooses the periods, so that there are so many a second */
};
enum control_unit run_control_unit(const struct run_control *c, unsigned int event);
const char *run_control_unit_name(enum control_unit unit);

/* Members of the replies; control_status.c */
void run_control_put_status(struct run_control *c, struct json_writer *w);
void run_control_put_stats(struct run_control *c, struct json_writer *w);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pipeline_private: what the files of pipeline.h share. All of it is the consumer's thread's.
 */
#ifndef KVMPROF_PROFILE_RECORD_PIPELINE_PIPELINE_PRIVATE_H
#define KVMPROF_PROFILE_RECORD_PIPELINE_PIPELINE_PRIVATE_H

#include "base/fault.h"
#include "profile/record/pipeline/held.h"
#include "profile/record/pipeline/merge.h"
#include "profile/record/pipeline/pipeline.h"

#include <pthread.h>
#include <stdatomic.h>

struct pipeline {
	struct vm *vm;
	struct guest *guest;
	struct offcpu *offcpu; /* NULL: not asked for */
	struct sink *sink;
	struct pipeline_options opt;
	struct merge *merge;
	struct held held;
	pthread_t thread;
	atomic_bool stop;
	atomic_uint max_stack;
	_Atomic(struct pipeline_job *) job, running;
	struct fault fault; /* of the thread */
	struct pipeline_stats stats;
	uint64_t *dropped_seen;	    /* of each ring, already reported to the sink */
	uint64_t last_ns;	    /* time of the newest sample */
	uint64_t flush_ns;	    /* when the sink was asked to write last */
	struct pipeline_last *last; /* of each vCPU */
	struct stack stack, crash;
	struct io_join *io;	      /* NULL: no event of disks or packets */
	uint64_t io_full, net_full;   /* records of requests, of packets that it had no room for */
	struct io_stages_log *stages; /* NULL: nobody asks */
	struct err err;
};

/* What the sink returned: the profile can't be written, and there is no use in running on. */
void pipeline_fail(struct pipeline *p, int ret);

/* pipeline_count.c: a sample in the figures of the run, with as many frames as are wanted, and to the sink. */
void pipeline_count(struct pipeline *p, const struct profile_sample *s);
void pipeline_cut(struct pipeline *p, struct stack *s);
int pipeline_write(struct pipeline *p, const struct profile_sample *out);

/* pipeline_io.c: requests of disks and packets that are there, and whose stacks are known or never will be. */
void pipeline_requests(struct pipeline *p, enum io_join_which which);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * offcpu: samples of the tasks that do not run.
 *
 * Time is divided into periods as for vCPUs (vmm/capture/trigger.h), with one walk of all tasks
 * (task_walk.h) at a random point of each. Each task that does not run then yields a sample that
 * stands for the period, so that the weights of a task add up to the time in which it did not run.
 * If walks take too large a part of the time some periods pass without one, and the samples of the
 * next walk stand for these too. Docs: tasks.md.
 *
 * All functions are called by the consumer thread only; offcpu_create() and offcpu_destroy() may be
 * called by another thread while that thread does not run.
 */
#ifndef KVMPROF_PROFILE_RECORD_PIPELINE_OFFCPU_H
#define KVMPROF_PROFILE_RECORD_PIPELINE_OFFCPU_H

#include "profile/record/pipeline/task_walk.h"

/* Walks use at most 1 / OFFCPU_SHARE of the consumer thread's time. */
#define OFFCPU_SHARE 10u

/* Counters for the summary. */
struct offcpu_stats {
	/* an object exists */
	bool on;
	uint64_t period_ns;
	uint64_t samples, weight_ns;
	uint64_t stretched; /* periods without a walk, because walks took too long */
	uint64_t late;	    /* periods that were over before the walk could begin */
	struct task_walk_stats look;
};

struct offcpu;

/* Takes a sample, which is valid during the call only. */
typedef void (*offcpu_sample_fn)(void *ctx, const struct sample *s);

/*
 * Creates an object for the tasks of g, which must outlive it. period_ns is not 0; `event` is the
 * index of the event in the profile. The first period begins at the first call of offcpu_run().
 * Returns 0 or -ENOMEM. The caller frees it with offcpu_destroy(), which accepts NULL.
 */
int offcpu_create(struct offcpu **out, struct guest *g, uint64_t period_ns, uint8_t event,
		  struct err *e);
void offcpu_destroy(struct offcpu *o);

/*
 * Walks all tasks if a walk is due at now_ns (CLOCK_MONOTONIC), and calls take() for each sample.
 * If `collecting` is false the period passes without a walk. If the tasks are not known yet the
 * period is skipped, and a later one tries again. Returns 0 or -ENOMEM.
 */
int offcpu_run(struct offcpu *o, uint64_t now_ns, bool collecting, offcpu_sample_fn take, void *ctx,
	       struct err *e);

/* Copies the counters. */
void offcpu_stats(struct offcpu *o, struct offcpu_stats *out);

#endif

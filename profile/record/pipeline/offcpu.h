/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * offcpu: samples of the tasks that do not run.
 *
 * Time is cut into periods as for vCPUs (vmm/capture/trigger.h), with one look at all tasks at a
 * random place of each. Whoever does not run then gives a sample that stands for the
 * period, so that a task's weight adds up to the time that it did not run. Looks that
 * take too much of a period are made less often, and stand for more. Docs: tasks.md.
 *
 * On the consumer's thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_PIPELINE_OFFCPU_H
#define KVMPROF_PROFILE_RECORD_PIPELINE_OFFCPU_H

#include "profile/record/pipeline/look.h"

/* Part of the consumer's time that looks may take: 1 / this. */
#define OFFCPU_SHARE 10u

/* For the summary. */
struct offcpu_stats {
	bool on;
	uint64_t period_ns;
	uint64_t samples, weight_ns;
	uint64_t stretched; /* periods without a look of their own, as looks took too long */
	uint64_t late;	    /* periods that had passed when a look could be made */
	struct look_stats look;
};

struct offcpu;

typedef void (*offcpu_sample_fn)(void *ctx, const struct sample *s);

/* event: of the samples. g must outlive it. Time begins at the first call of offcpu_run(). */
int offcpu_create(struct offcpu **out, struct guest *g, uint64_t period_ns, uint8_t event,
		  struct err *e);
void offcpu_destroy(struct offcpu *o);

/*
 * Look if it is time; each sample goes to take(). Unless `collecting` the period passes without
 * a look. What is not known yet is tried again; errors are -ENOMEM.
 */
int offcpu_run(struct offcpu *o, uint64_t now_ns, bool collecting, offcpu_sample_fn take, void *ctx,
	       struct err *e);

void offcpu_stats(struct offcpu *o, struct offcpu_stats *out);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_look: one look at all of the guest's tasks, those that don't run with their stacks.
 *
 * Read out of the guest's memory while it runs; no vCPU is stopped. The list is walked as
 * it is at that moment; a task that moved while it was read is told as such and counted.
 * On the consumer's thread, or when that has ended.
 */
#ifndef KVMPROF_PROFILE_RECORD_PIPELINE_LOOK_H
#define KVMPROF_PROFILE_RECORD_PIPELINE_LOOK_H

#include "base/hist.h"
#include "profile/record/guest/guest.h"
#include "symbolizer/linux/sleeper.h"

struct look_stats {
	uint64_t looks, failed; /* failed: tasks were not known yet */
	uint64_t tasks;		/* seen, in all looks; so are: */
	uint64_t by[LINUX_SLEEPER_COUNT];
	uint64_t skipped;    /* members of the lists that could not be believed */
	uint64_t cut;	     /* lists that did not come back to their head */
	struct hist cost_ns; /* of a look, with all that was done about it */
};

struct guest_look;

/* g must outlive it. */
int look_create(struct guest_look **out, struct guest *g, struct err *e);
void look_destroy(struct guest_look *l);

/*
 * s: of where it stopped, when what is LINUX_SLEEPER_GOOD; else NULL. Both are valid during
 * the call. Anything but 0 ends the look.
 */
typedef int (*guest_look_fn)(void *ctx, const struct linux_task *t, const struct linux_sched *sched,
			     enum linux_sleeper what, struct sample *s, struct err *e);

/* Of each task the frames in the kernel, or also those of its program below them. */
enum guest_look_at { GUEST_LOOK_AT_KERNEL, GUEST_LOOK_AT_PROGRAMS };

/*
 * All tasks but the idle ones, with each its threads.
 * -EAGAIN: they are not known (yet), the reason is in e.
 */
int look_all(struct guest_look *l, enum guest_look_at at, guest_look_fn each, void *ctx,
	     struct err *e);

/* Why kernel stacks, or states, can't be told here; "" when they can. */
const char *look_lacks(const struct guest_look *l);
const struct linux_sched_layout *look_layout(const struct guest_look *l);
struct look_stats *look_stats(struct guest_look *l);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * look: one walk of all tasks of the guest, with the stacks of those that do not run.
 *
 * The tasks are read from the guest's memory while the guest runs; no vCPU is stopped. The list is
 * walked as it is at that moment; a task that changed while it was read is reported as such and
 * counted.
 *
 * All functions are called by the consumer thread, or by the main thread after the consumer thread
 * has ended.
 */
#ifndef KVMPROF_PROFILE_RECORD_PIPELINE_LOOK_H
#define KVMPROF_PROFILE_RECORD_PIPELINE_LOOK_H

#include "base/hist.h"
#include "profile/record/guest/guest.h"
#include "symbolizer/linux/sleeper.h"

struct look_stats {
	/* `failed`: walks that found no list of tasks, mostly because it was not known yet */
	uint64_t looks, failed;
	uint64_t tasks; /* tasks seen in all walks */
	/* the same, by what was found out about the task */
	uint64_t by[LINUX_SLEEPER_COUNT];
	uint64_t skipped;    /* members of the lists that were implausible */
	uint64_t cut;	     /* lists that did not lead back to their head */
	struct hist cost_ns; /* duration of a walk, with all that each() did */
};

struct guest_look;

/*
 * Creates an object that reads the tasks of g, which must outlive it. Returns 0 or -ENOMEM. The
 * caller frees it with look_destroy(), which accepts NULL.
 */
int look_create(struct guest_look **out, struct guest *g, struct err *e);
void look_destroy(struct guest_look *l);

/*
 * Called for each task. *t and *sched describe it; `what` says whether its stack could be read. If
 * `what` is LINUX_SLEEPER_GOOD, s is a sample of the place where the task stopped, whose event,
 * time and weight the callee may set; otherwise s is NULL. All pointers are valid during the call
 * only. A return value other than 0 ends the walk.
 */
typedef int (*guest_look_fn)(void *ctx, const struct linux_task *t, const struct linux_sched *sched,
			     enum linux_sleeper what, struct sample *s, struct err *e);

/* Which frames a stack has: those in the kernel only, or also those of the task's program. */
enum guest_look_at { GUEST_LOOK_AT_KERNEL, GUEST_LOOK_AT_PROGRAMS };

/*
 * Calls each() for all tasks except the idle tasks, threads included, but not for a task that
 * cannot be read (which is counted). Returns 0 after the last one, the value of each() if that is
 * not 0, -ENOMEM, or -EAGAIN if the tasks are not known (yet), with the reason in *e.
 */
int look_all(struct guest_look *l, enum guest_look_at at, guest_look_fn each, void *ctx,
	     struct err *e);

/*
 * Returns why kernel stacks or states of tasks are unavailable in this guest, or "" if both are
 * available. The string is static.
 */
const char *look_lacks(const struct guest_look *l);
/*
 * Returns the layout of the scheduler's members that is in use. Valid until look_destroy(); a later
 * look_all() may complete it.
 */
const struct linux_sched_layout *look_layout(const struct guest_look *l);
/* Returns the counters of this object. Valid until look_destroy(). */
struct look_stats *look_stats(struct guest_look *l);

#endif

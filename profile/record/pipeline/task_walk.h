/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * task_walk: one walk of all tasks of the guest, with the stacks of those that do not run.
 *
 * The tasks are read from the guest's memory while the guest runs; no vCPU is stopped. The list is
 * walked as it is at that moment; a task that changed while it was read is reported as such and
 * counted.
 *
 * All functions are called by the consumer thread, or by the main thread after the consumer thread
 * has ended.
 */
#ifndef KVMPROF_PROFILE_RECORD_PIPELINE_TASK_WALK_H
#define KVMPROF_PROFILE_RECORD_PIPELINE_TASK_WALK_H

#include "base/hist.h"
#include "profile/record/guest/guest.h"
#include "symbolizer/linux/sleeper.h"

struct task_walk_stats {
	/* `failed`: walks that found no list of tasks, mostly because it was not known yet */
	uint64_t looks, failed;
	uint64_t tasks; /* tasks seen in all walks */
	/* the same, by what was found out about the task */
	uint64_t by[LINUX_SLEEPER_COUNT];
	uint64_t skipped;    /* members of the lists that were implausible */
	uint64_t cut;	     /* lists that did not lead back to their head */
	struct hist cost_ns; /* duration of a walk, with all that each() did */
};

struct task_walk;

/*
 * Creates an object that reads the tasks of g, which must outlive it. Returns 0 or -ENOMEM. The
 * caller frees it with task_walk_destroy(), which accepts NULL.
 */
int task_walk_create(struct task_walk **out, struct guest *g, struct err *e);
void task_walk_destroy(struct task_walk *l);

/*
 * Called for each task. *t and *sched describe it; `what` says whether its stack could be read. If
 * `what` is LINUX_SLEEPER_GOOD, s is a sample of the place where the task stopped, whose event,
 * time and weight the callee may set; otherwise s is NULL. All pointers are valid during the call
 * only. A return value other than 0 ends the walk.
 */
typedef int (*task_walk_fn)(void *ctx, const struct linux_task *t, const struct linux_sched *sched,
			    enum linux_sleeper what, struct sample *s, struct err *e);

/* Which frames a stack has: those in the kernel only, or also those of the task's program. */
enum task_walk_depth { TASK_WALK_KERNEL, TASK_WALK_PROGRAMS };

/*
 * Calls each() for all tasks except the idle tasks, threads included, but not for a task that
 * cannot be read (which is counted). Returns 0 after the last one, the value of each() if that is
 * not 0, -ENOMEM, or -EAGAIN if the tasks are not known (yet), with the reason in *e.
 */
int task_walk_run(struct task_walk *l, enum task_walk_depth at, task_walk_fn each, void *ctx,
		  struct err *e);

/*
 * Returns why kernel stacks or states of tasks are unavailable in this guest, or "" if both are
 * available. The string is static.
 */
const char *task_walk_lacks(const struct task_walk *l);
/*
 * Returns the layout of the scheduler's members that is in use. Valid until task_walk_destroy(); a
 * later task_walk_run() may complete it.
 */
const struct linux_sched_layout *task_walk_layout(const struct task_walk *l);
/* Returns the counters of this object. Valid until task_walk_destroy(). */
struct task_walk_stats *task_walk_stats(struct task_walk *l);

#endif

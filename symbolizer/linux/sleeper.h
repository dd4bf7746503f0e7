/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linux_sleeper: makes a sample of a task that is not running, at the place where it stopped.
 *
 * A task that gave up its CPU has its registers on its kernel stack (struct inactive_task_frame,
 * arch/x86/include/asm/switch_to.h, "sched/x86: Rewrite the switch_to() code", 4.9) and their
 * address in thread.sp. From there the stack is unwound like any other. The guest runs meanwhile:
 * a copy is used only if the task is unchanged when it is checked again.
 *
 * Any thread that may use the memory; no allocation.
 */
#ifndef KVMPROF_SYMBOLIZER_LINUX_SLEEPER_H
#define KVMPROF_SYMBOLIZER_LINUX_SLEEPER_H

#include "base/sample.h"
#include "symbolizer/linux/graph.h"
#include "symbolizer/linux/sched.h"

/* Maximum bytes of a program's stack that are copied. */
#define LINUX_SLEEPER_USER SAMPLE_MAX_SLICE
/* Bytes that a sample needs after it. */
#define LINUX_SLEEPER_ROOM (SAMPLE_MAX_SLICE + LINUX_SLEEPER_USER + SAMPLE_MAX_RETURNS)

enum linux_sleeper {
	LINUX_SLEEPER_GOOD = 0,
	LINUX_SLEEPER_RUNS,    /* it is on a CPU */
	LINUX_SLEEPER_DEAD,    /* it has ended, and its stack may have been freed */
	LINUX_SLEEPER_UNKNOWN, /* this kernel's thread.sp is unknown, or not in that task's stack */
	LINUX_SLEEPER_UNREADABLE, /* a page is missing, or the pointer is invalid */
	LINUX_SLEEPER_CHANGED,	  /* it ran, ended or was replaced while it was read */
	LINUX_SLEEPER_COUNT
};

/* Returns the result as text for messages; static. */
const char *linux_sleeper_name(enum linux_sleeper what);

struct linux_sleeper_from {
	const struct linux_task_layout *task;
	const struct linux_sched_layout *sched;
	const struct linux_graph_layout *graph;	    /* NULL: not known */
	const struct linux_rethook_layout *rethook; /* NULL: not known */
	const struct memory *memory;
	unsigned int ncpus; /* number of processors of the machine */
	/* Called so that memory is read again instead of from a cache; NULL: there is no cache. */
	void (*forget)(void *ctx);
	void *forget_ctx;
};

/*
 * Makes a sample of task t, as it was listed. space: its program's memory (a CR3), 0: unknown.
 * Sets in *s what a stack needs: version, reason (SAMPLE_OFFCPU), mode, registers, task, slices,
 * returns, CPU; the rest is 0. s has LINUX_SLEEPER_ROOM bytes after it. *sched is written unless
 * the result is LINUX_SLEEPER_UNREADABLE. Returns enum linux_sleeper.
 */
int linux_sleeper_sample(const struct linux_sleeper_from *from, const struct linux_task *t,
			 uint64_t space, struct sample *s, struct linux_sched *sched);

#endif

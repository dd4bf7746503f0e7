/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linux_sleeper: a task that does not run, as a sample of where it stopped.
 *
 * A task that gave up its CPU left its registers on its kernel stack (struct
 * inactive_task_frame, arch/x86/include/asm/switch_to.h, "sched/x86: Rewrite the
 * switch_to() code", 4.9) and the address of that in thread.sp. From there on the stack
 * is unwound as any other. The guest runs meanwhile: what was copied counts only if the
 * task had not moved when it was looked at again.
 *
 * Any thread; no allocation.
 */
#ifndef KVMPROF_SYMBOLIZER_LINUX_SLEEPER_H
#define KVMPROF_SYMBOLIZER_LINUX_SLEEPER_H

#include "base/sample.h"
#include "symbolizer/linux/graph.h"
#include "symbolizer/linux/sched.h"

/* Most of a program's stack that is copied. */
#define LINUX_SLEEPER_USER SAMPLE_MAX_SLICE
/* Bytes that a sample needs behind it. */
#define LINUX_SLEEPER_ROOM (SAMPLE_MAX_SLICE + LINUX_SLEEPER_USER + SAMPLE_MAX_RETURNS)

enum linux_sleeper {
	LINUX_SLEEPER_GOOD = 0,
	LINUX_SLEEPER_RUNS,    /* it is on a CPU */
	LINUX_SLEEPER_DEAD,    /* it has ended, and its stack may be gone */
	LINUX_SLEEPER_UNKNOWN, /* this kernel's thread.sp is not known, or not that task's stack */
	LINUX_SLEEPER_UNREADABLE, /* a page is not there, or the pointer is none */
	LINUX_SLEEPER_CHANGED,	  /* it ran, ended or became another while it was read */
	LINUX_SLEEPER_COUNT
};

const char *linux_sleeper_name(enum linux_sleeper what);

struct linux_sleeper_from {
	const struct linux_task_layout *task;
	const struct linux_sched_layout *sched;
	const struct linux_graph_layout *graph;	    /* NULL: not known */
	const struct linux_rethook_layout *rethook; /* NULL: not known */
	const struct memory *memory;
	unsigned int ncpus; /* of the machine */
	/* What memory has read so far is to be read anew; NULL: it always is. */
	void (*forget)(void *ctx);
	void *forget_ctx;
};

/*
 * t: the task as it was listed; its space for its program's memory (a CR3), 0: unknown.
 * Fills in of *s what a stack needs: version, reason (SAMPLE_OFFCPU), mode, registers,
 * task, slices, returns, CPU; the rest is 0. s has LINUX_SLEEPER_ROOM bytes behind it.
 * *sched is written unless it comes to UNREADABLE. Returns enum linux_sleeper.
 */
int linux_sleeper_take(const struct linux_sleeper_from *from, const struct linux_task *t,
		       uint64_t space, struct sample *s, struct linux_sched *sched);

#endif

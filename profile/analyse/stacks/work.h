/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * work: whose work the counts of a run are: the workload's, that of what ran beside it, or that before it.
 *
 * Which kernel threads run, for how long, and how many timer interrupts come before a guest turns its power off depends on when it
 * does so. One more system call moves that by a period of the timer, and with it the counts of threads that have nothing to do
 * with the call. Firmware, boot loader and decompressor (phase first of a boot) are not what a kernel's builds differ in.
 *
 * The stack says it: kernel threads have kthread() at its outer end, unless it is a worker of a program's (io_uring), idle
 * vCPUs cpu_startup_entry(), interrupts their entry, and the scheduler is called by the end of an interrupt's work
 * (__cond_resched() and its like) where it takes a task's processor away. Exceptions such as page faults are the workload's.
 * Pure. One thread.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_STACKS_WORK_H
#define KVMPROF_PROFILE_ANALYSE_STACKS_WORK_H

#include "profile/analyse/stacks/phases.h"

enum work {
	WORK_WORKLOAD,	/* programs, and the boot of the kernel itself */
	WORK_MEANWHILE, /* kernel threads, idle vCPUs, interrupts, preemption */
	WORK_BEFORE,	/* firmware, boot loader, decompressor */
	WORK_KINDS
};

/*
 * Finds whose work each stack is, without regard to the phase of a boot: *out has an enum work for each. Returns 0 or
 * -ENOMEM. The caller frees it.
 */
int work_find(uint8_t **out, const struct stackset *s);

/* Returns whose work a sample is. of_stack: what work_find() found. */
static inline enum work work_of_sample(const uint8_t *of_stack, const struct phases *p,
				       const struct stackset_sample *m)
{
	if (p->boot && phases_at(p, m->time_ns) < PHASE_START_KERNEL)
		return WORK_BEFORE;
	return (enum work)of_stack[m->stack];
}

/*
 * Returns what a stack of WORK_MEANWHILE belongs to: the function of the kernel thread ("worker_thread"), "idle",
 * "interrupts" or "preemption".
 */
const char *work_thread(const struct stackset *s, const struct stackset_stack *st);

#endif

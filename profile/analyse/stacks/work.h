/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * work: attributes the counts of a run to the workload, to other activity beside it, or to the time
 * before it.
 *
 * How long kernel threads run, and how many timer interrupts occur before a guest turns its power
 * off, depends on when it does so. One more system call moves that by a timer period, and with it
 * the counts of threads unrelated to the call. Firmware, boot loader and decompressor (phase first
 * of a boot) do not differ between builds of a kernel.
 *
 * The stack tells: kernel threads have kthread() at their outer end, except workers of a program
 * (io_uring); idle vCPUs have cpu_startup_entry(); interrupts have their entry; and at preemption
 * the scheduler is called by the end of an interrupt's work (__cond_resched() and similar).
 * Exceptions such as page faults belong to the workload. The functions keep no state; any thread
 * may call them.
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
 * Classifies each stack, regardless of the phases of a boot: *out has an enum work for each stack.
 * The caller frees it with free(), also after an error. Returns 0 or -ENOMEM.
 */
int work_find(uint8_t **out, const struct stackset *s);

/* Returns the class of a sample; of_stack is the result of work_find(). */
static inline enum work work_of_sample(const uint8_t *of_stack, const struct phases *p,
				       const struct stackset_sample *m)
{
	if (p->boot && phases_at(p, m->time_ns) < PHASE_START_KERNEL)
		return WORK_BEFORE;
	return (enum work)of_stack[m->stack];
}

/*
 * Returns the name of the activity of a WORK_MEANWHILE stack: the function of the kernel thread
 * ("worker_thread"), "idle", "interrupts" or "preemption". The set owns it.
 */
const char *work_thread(const struct stackset *s, const struct stackset_stack *st);

#endif

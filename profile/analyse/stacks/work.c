/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/stacks/work.h"

#include "base/cleanup.h"
#include "profile/analyse/stacks/identity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROOTS 4u /* number of outermost frames examined */

enum root {
	ROOT_THREAD, /* the function it calls is that of a kernel thread */
	ROOT_SELF,   /* it is the function of a kernel thread */
	ROOT_IDLE,
	ROOT_INTERRUPT,
};

/*
 * Functions at the outer end of stacks: arch/x86/entry/entry_64.S, kernel/kthread.c,
 * kernel/workqueue.c, kernel/smpboot.c and kernel/sched/idle.c; 4.19 to 6.18. The list has the
 * function of a thread where its caller is not always in the stack. `first`: only as the outermost
 * frame, because others call it, too: softirqs on the stack of interrupts have no caller, those of
 * local_bh_enable() have.
 */
static const struct {
	const char *name;
	enum root root;
	bool first, prefix;
} roots[] = {
	{ "kthread", ROOT_THREAD, false, false },
	{ "kthreadd", ROOT_SELF, false, false },
	{ "worker_thread", ROOT_SELF, true, false },
	{ "rescuer_thread", ROOT_SELF, true, false },
	{ "process_one_work", ROOT_SELF, true, false },
	{ "smpboot_thread_fn", ROOT_SELF, true, false },
	{ "kthread_worker_fn", ROOT_SELF, true, false },
	{ "cpu_startup_entry", ROOT_IDLE, false, false },
	{ "do_idle", ROOT_IDLE, true, false },
	{ "cpu_idle_loop", ROOT_IDLE, true, false },
	{ "asm_sysvec_", ROOT_INTERRUPT, true, true },
	{ "sysvec_", ROOT_INTERRUPT, true, true },
	{ "__sysvec_", ROOT_INTERRUPT, true, true },
	{ "asm_common_interrupt", ROOT_INTERRUPT, true, false },
	{ "common_interrupt", ROOT_INTERRUPT, true, false },
	{ "__common_interrupt", ROOT_INTERRUPT, true, false },
	{ "asm_spurious_interrupt", ROOT_INTERRUPT, true, false },
	{ "irq_entries_start", ROOT_INTERRUPT, true, false },
	{ "interrupt_entry", ROOT_INTERRUPT, true, false },
	{ "ret_from_intr", ROOT_INTERRUPT, true, false },
	{ "do_IRQ", ROOT_INTERRUPT, true, false },
	{ "apic_timer_interrupt", ROOT_INTERRUPT, true, false },
	{ "smp_apic_timer_interrupt", ROOT_INTERRUPT, true, false },
	{ "reschedule_interrupt", ROOT_INTERRUPT, true, false },
	{ "call_function_interrupt", ROOT_INTERRUPT, true, false },
	{ "call_function_single_interrupt", ROOT_INTERRUPT, true, false },
	{ "handle_edge_irq", ROOT_INTERRUPT, true, false },
	{ "handle_level_irq", ROOT_INTERRUPT, true, false },
	{ "handle_fasteoi_irq", ROOT_INTERRUPT, true, false },
	{ "handle_irq", ROOT_INTERRUPT, true, false },
	{ "irq_exit", ROOT_INTERRUPT, true, false },
	{ "__irq_exit_rcu", ROOT_INTERRUPT, true, false },
	{ "irq_exit_rcu", ROOT_INTERRUPT, true, false },
	{ "__do_softirq", ROOT_INTERRUPT, true, false },
	{ "__softirqentry_text_start", ROOT_INTERRUPT, true, false },
	{ "handle_softirqs", ROOT_INTERRUPT, true, false },
	{ "asm_exc_nmi", ROOT_INTERRUPT, true, false },
	{ "restore_regs_and_return_to_kernel", ROOT_INTERRUPT, true, false },
	{ "native_irq_return_iret", ROOT_INTERRUPT, true, false },
};

/*
 * Functions that call the scheduler for a task that does not wait, because a timer interrupt has
 * requested it. Source: kernel/sched/core.c and kernel/entry/common.c.
 */
static const char *const preempting[] = {
	"__cond_resched",
	"dynamic_cond_resched",
	"preempt_schedule",
	"preempt_schedule_common",
	"preempt_schedule_notrace",
	"preempt_schedule_irq",
	"irqentry_exit_cond_resched",
	"raw_irqentry_exit_cond_resched",
	"exit_to_user_mode_loop",
	"exit_to_user_mode_prepare",
	"syscall_exit_to_user_mode",
	"irqentry_exit_to_user_mode",
	"exit_to_usermode_loop",
};

/*
 * The information on a function is 1 + its index in roots[], or 0 if it is none of them, and these
 * flags.
 */
#define INFO_ROOT 0xffu
#define INFO_PREEMPTS (1u << 8)
#define INFO_SCHEDULES (1u << 9)

static bool is_called(const char *name, const char *what)
{
	size_t len = strlen(what);

	return !strncmp(name, what, len) && identity_name_len(name) == len;
}

static uint16_t info_of(const struct stackset_func *f)
{
	if (f->kind != STACKSET_KIND_KERNEL)
		return 0;
	if (is_called(f->name, "__schedule") || is_called(f->name, "schedule"))
		return INFO_SCHEDULES;
	for (size_t i = 0; i < ARRAY_SIZE(preempting); i++)
		if (is_called(f->name, preempting[i]))
			return INFO_PREEMPTS;
	for (size_t i = 0; i < ARRAY_SIZE(roots); i++)
		if (roots[i].prefix ? !strncmp(f->name, roots[i].name, strlen(roots[i].name))
				    : is_called(f->name, roots[i].name))
			return (uint16_t)(i + 1);
	return 0;
}

static uint32_t func_at(const struct stackset *s, const struct stackset_stack *st,
			uint32_t from_outside)
{
	return s->frame[st->frame[st->n - 1 - from_outside]].func;
}

static bool is_before(const struct stackset_func *f)
{
	return !strcmp(f->dso, "[firmware]") || !strcmp(f->dso, "[decompressor]");
}

/* Returns true if the scheduler preempts a task in this stack. */
static bool is_preempted(const struct stackset *s, const struct stackset_stack *st,
			 const uint16_t *info)
{
	for (uint32_t at = 1; at < st->n; at++)
		if ((info[func_at(s, st, at)] & INFO_SCHEDULES) &&
		    (info[func_at(s, st, at - 1)] & INFO_PREEMPTS))
			return true;
	return false;
}

static enum work work_of_stack(const struct stackset *s, const struct stackset_stack *st,
			       const uint16_t *info)
{
	if (st->n && is_before(&s->func[func_at(s, st, st->n - 1)]))
		return WORK_BEFORE;
	if (st->mode == STACKSET_IDLE)
		return WORK_MEANWHILE;
	for (uint32_t at = 0; at < st->n && at < ROOTS; at++) {
		unsigned int i = info[func_at(s, st, at)] & INFO_ROOT;

		if (i && (!at || !roots[i - 1].first))
			return WORK_MEANWHILE;
	}
	return is_preempted(s, st, info) ? WORK_MEANWHILE : WORK_WORKLOAD;
}

int work_find(uint8_t **out, const struct stackset *s)
{
	cleanup_free uint16_t *info = calloc(s->nfuncs + 1, sizeof(*info));

	*out = calloc(s->nstacks + 1, 1);
	if (!info || !*out)
		return -ENOMEM;
	for (size_t i = 0; i < s->nfuncs; i++)
		info[i] = info_of(&s->func[i]);
	for (size_t i = 0; i < s->nstacks; i++)
		(*out)[i] = (uint8_t)work_of_stack(s, &s->stack[i], info);
	return 0;
}

const char *work_thread(const struct stackset *s, const struct stackset_stack *st)
{
	for (uint32_t at = 0; at < st->n && at < ROOTS; at++) {
		uint32_t func = func_at(s, st, at);
		unsigned int i = info_of(&s->func[func]) & INFO_ROOT;

		if (!i || (at && roots[i - 1].first))
			continue;
		if (roots[i - 1].root == ROOT_INTERRUPT)
			return "interrupts";
		if (roots[i - 1].root == ROOT_IDLE)
			return "idle";
		if (roots[i - 1].root == ROOT_THREAD && at + 1 < st->n)
			func = func_at(s, st, at + 1);
		return s->func[func].name;
	}
	return st->mode == STACKSET_IDLE ? "idle" : "preemption";
}

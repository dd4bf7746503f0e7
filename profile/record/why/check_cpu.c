/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The checks of processors that run without progress. */
#include "profile/record/why/private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define RESCHEDULE_BIT UINT64_C(0x80000000)
#define SCHED_FIFO 1
#define SCHED_RR 2

unsigned int why_cpu_of(const struct why *w, unsigned int i)
{
	uint64_t table = why_variable(w, "__per_cpu_offset"), base;

	for (unsigned int c = 0; table && w->vcpu[i].mode != SAMPLE_USER && c < w->vcpus; c++)
		if (memory_u64(w->view.memory, table + 8ull * c, &base) &&
		    base == w->vcpu[i].regs.gs_base)
			return c;
	return i;
}

static const struct why_task *current_of(struct why *w, unsigned int i)
{
	struct why_scene *s = why_now(w);
	const struct why_rq *q = &s->rq[why_cpu_of(w, i)];
	const struct why_task *t = why_task_at(s, w->vcpu[i].task);

	return t ? t : q->curr != WHY_UNKNOWN ? why_task_at(s, q->curr) : NULL;
}

static const char *current_name(struct why *w, unsigned int i)
{
	const struct why_task *t = current_of(w, i);

	return t ? why_task_name(t) : "the idle task";
}

uint64_t why_stuck_ns(struct why *w, unsigned int i)
{
	struct why_scene *s = why_now(w);
	const struct why_scene *b = why_before(w);
	const struct why_rq *q = &s->rq[why_cpu_of(w, i)];
	const struct why_task *t = current_of(w, i);
	uint64_t lag = q->known && s->clock >= q->clock ? s->clock - q->clock : 0;
	uint64_t on = t && t->on_cpu_ns != WHY_UNKNOWN ? t->on_cpu_ns : 0;

	/* The task must be the same at both looks, without a switch between them. */
	if (t && b && b->time_ns) {
		const struct why_task *then = why_task_of(b, t->t.pid);

		if (!then || then->s.switches != t->s.switches)
			on = 0;
	}
	return on > lag ? on : lag;
}

bool why_is_frozen(struct why *w, unsigned int i)
{
	struct why_scene *s = why_now(w);
	const struct why_scene *b = why_before(w);

	/* Without type information only jiffies is known. */
	return !w->still && b && (b->clock || b->jiffies != WHY_UNKNOWN) && s->clock == b->clock &&
	       s->jiffies == b->jiffies && w->vcpu[i].samples >= WHY_ENOUGH && w->vcpu[i].func &&
	       w->vcpu[i].kernel == w->vcpu[i].samples;
}

/*
 * Returns whether no clock of the guest moves. *ns is the time between the looks, which is what
 * that proves.
 */
static bool is_frozen_long(struct why *w, unsigned int i, uint64_t *ns)
{
	const struct why_scene *b = why_before(w);

	if (!why_is_frozen(w, i) || !why_is_running(w))
		return false;
	*ns = why_now(w)->time_ns - b->time_ns;
	return *ns >= w->hang_ns || *ns >= WHY_FROZEN_NS;
}

/* Returns whether vCPU i has had the same task for long. *ns is the time that is proven. */
static bool is_stuck(struct why *w, unsigned int i, uint64_t *ns)
{
	*ns = why_stuck_ns(w, i);
	return *ns >= w->hang_ns || is_frozen_long(w, i, ns);
}

/*
 * Returns whether vCPU i has taken no timer interrupt for long: its clock did not move, or its
 * timer is late. *ns is that time.
 */
static bool is_deaf(struct why *w, unsigned int i, uint64_t *ns)
{
	struct why_scene *s = why_now(w);
	unsigned int cpu = why_cpu_of(w, i);
	const struct why_rq *q = &s->rq[cpu];
	uint64_t late = why_late_ns(w, cpu);

	*ns = q->known && s->clock >= q->clock ? s->clock - q->clock : 0;
	if (late != WHY_UNKNOWN && late > *ns)
		*ns = late;
	return *ns >= w->hang_ns || is_frozen_long(w, i, ns);
}

bool why_wants_longer(struct why *w)
{
	const struct why_scene *b = why_before(w);

	if (!b || why_now(w)->time_ns - b->time_ns >= WHY_FROZEN_NS)
		return false;
	for (unsigned int i = 0; i < w->vcpus; i++)
		if (why_is_frozen(w, i) || (w->vcpu[i].samples && w->vcpu[i].samples < WHY_ENOUGH))
			return true;
	return false;
}

bool why_suspects(struct why *w, const json_t *result)
{
	const struct why_scene *s = why_now(w), *b = why_before(w);

	if (why_status(result))
		return true;
	if (!b || s->clock == b->clock)
		return true;
	/* A processor that is not idle takes a tick, which sets its clock. */
	for (unsigned int i = 0; i < w->vcpus; i++) {
		const struct why_rq *now = &s->rq[i], *then = &b->rq[i];

		if (now->known && then->known && now->clock == then->clock &&
		    now->curr == then->curr && now->curr != now->idle)
			return true;
	}
	return false;
}

static void prove_cpu(struct why *w, struct why_finding *f, unsigned int i, uint64_t ns)
{
	const struct why_vcpu *v = &w->vcpu[i];

	why_prove(w, f, "vcpu", i);
	why_prove_hex(w, f, "rip", v->regs.rip);
	why_prove(w, f, "stuck_ns", ns);
	why_prove(w, f, "samples", v->samples);
	if (why_is_frozen(w, i))
		why_fact(w, f,
			 "%s between the looks, %.1f s apart, and all %" PRIu64
			 " samples of vCPU %u are in the same function",
			 why_now(w)->clock ? "neither a run queue's clock nor jiffies moved"
					   : "jiffies did not move",
			 why_seconds(why_now(w)->time_ns - why_before(w)->time_ns), v->samples, i);
	else
		why_fact(
			w, f,
			"by the guest's own clocks vCPU %u has been there for at least %.1f s; all "
			"%" PRIu64 " samples agree",
			i, why_seconds(ns), v->samples);
}

/*
 * Whether a queued spinlock at this address is locked (include/asm-generic/qspinlock_types.h), and has waiters in its word. A kernel that
 * knows that it is a guest may try again and again instead (virt_spin_lock()), so that its word is 1 alone.
 */
static bool is_locked(const struct why *w, uint64_t at, bool with_waiters)
{
	uint32_t v;

	return at >> 63 && !(at & 3) && memory_u32(w->view.memory, at, &v) && (v & 0xff) &&
	       (v & 0xff) <= 3 && (v >> 8 & 0xff) <= 1 && (with_waiters ? v >> 8 != 0 : v == 1);
}

/* The slow path has the lock in the register of its argument, or in one that it saves. */
uint64_t why_spinlock_of(const struct why *w, const struct sample_regs *r, uint32_t *word)
{
	static const uint8_t order[] = { GPR_RDI, GPR_RBX, GPR_RBP, GPR_R12,
					 GPR_R13, GPR_R14, GPR_R15 };
	uint64_t lock = is_locked(w, r->gpr[GPR_RDI], false) ? r->gpr[GPR_RDI] : 0;

	for (size_t k = 0; k < sizeof(order) && !lock; k++)
		if (is_locked(w, r->gpr[order[k]], true))
			lock = r->gpr[order[k]];
	return lock && memory_u32(w->view.memory, lock, word) ? lock : 0;
}

/*
 * A lock for which many compete is passed on, so it does not count: the vCPU has to have taken no tick for long, or to be the waiter of
 * one lock of which the word has never changed.
 */
static bool waits_for_spinlock(struct why *w, unsigned int i, uint64_t *ns)
{
	const struct why_vcpu *v = &w->vcpu[i];

	if (v->samples < WHY_ENOUGH || v->spinning != v->samples || v->lock_moves)
		return false;
	if (v->irqs_off == v->samples && is_deaf(w, i, ns))
		return true;
	return v->lock && is_stuck(w, i, ns);
}

void why_check_spinlock(struct why *w, struct why_finding *f)
{
	for (unsigned int i = 0; i < w->vcpus; i++) {
		const struct why_vcpu *v = &w->vcpu[i];
		uint64_t ns;

		if (!waits_for_spinlock(w, i, &ns))
			continue;
		why_bad(f, "vCPU %u has waited for %.1f s for the spinlock%s%s: %s, interrupts %s.",
			i, why_seconds(ns), v->lock ? " at " : ", whose address is not known",
			v->lock ? why_address(w, v->lock) : "", current_name(w, i),
			v->irqs_off == v->kernel ? "off" : "on");
		prove_cpu(w, f, i, ns);
		if (!v->lock)
			return;
		why_prove_hex(w, f, "lock", v->lock);
		why_prove_hex(w, f, "word", v->word);
		why_fact(w, f,
			 "the lock's word is 0x%x in all samples: locked%s; the kernel keeps no "
			 "owner",
			 v->word, v->word >> 8 ? ", with waiters" : "");
		return;
	}
	why_ok_if_sampled(w, f, "no vCPU spends its time in the slow path of a spinlock");
}

void why_check_irqs_off(struct why *w, struct why_finding *f)
{
	for (unsigned int i = 0; i < w->vcpus; i++) {
		const struct why_vcpu *v = &w->vcpu[i];
		uint64_t ns;

		if (v->samples < WHY_ENOUGH || v->irqs_off != v->samples || v->spinning ||
		    2 * v->interrupt > v->samples || !is_deaf(w, i, &ns))
			continue;
		why_bad(f, "vCPU %u has run with interrupts off for %.1f s: %s, in %s.", i,
			why_seconds(ns), current_name(w, i), why_place(w, &v->stack));
		prove_cpu(w, f, i, ns);
		return;
	}
	why_ok_if_sampled(w, f, "no vCPU runs with interrupts off for long");
}

void why_check_halted(struct why *w, struct why_finding *f)
{
	for (unsigned int i = 0; i < w->vcpus; i++) {
		const struct why_vcpu *v = &w->vcpu[i];

		if (v->samples < WHY_ENOUGH || v->dead != v->samples ||
		    !why_cpu_is_online(w, why_cpu_of(w, i)) || !why_is_running(w) ||
		    why_stack_has(&v->stack, "play_dead") ||
		    why_stack_has(&v->stack, "stop_this_cpu") ||
		    why_stack_has(&v->stack, "machine_halt"))
			continue;
		why_bad(f,
			"vCPU %u is halted with interrupts off, and only an NMI can wake it: %s, "
			"in %s.",
			i, current_name(w, i), why_place(w, &v->stack));
		why_prove(w, f, "vcpu", i);
		why_prove_hex(w, f, "rip", v->regs.rip);
		why_prove_hex(w, f, "rflags", v->regs.rflags);
		why_fact(w, f,
			 "its RFLAGS are 0x%" PRIx64
			 " (bit 9, IF, is 0), and the instruction before RIP is HLT",
			 v->regs.rflags);
		return;
	}
	why_ok_if_sampled(w, f, "no vCPU is halted with interrupts off");
}

/* Returns whether a reschedule was due at both looks. */
static bool wants_reschedule(struct why *w, unsigned int cpu)
{
	const struct why_scene *b = why_before(w);
	uint64_t now = why_now(w)->rq[cpu].preempt, then = b ? b->rq[cpu].preempt : now;

	return now != WHY_UNKNOWN && then != WHY_UNKNOWN && !(now & RESCHEDULE_BIT) &&
	       !(then & RESCHEDULE_BIT);
}

static bool has_others(struct why *w, unsigned int cpu)
{
	const struct why_scene *b = why_before(w);
	uint64_t now = why_now(w)->rq[cpu].nr_running, then = b ? b->rq[cpu].nr_running : now;

	return now != WHY_UNKNOWN && then != WHY_UNKNOWN && (uint32_t)now > 1 && (uint32_t)then > 1;
}

/*
 * Returns whether the scheduler should have switched to another task. Only a stopper preempts a
 * real-time task of its priority.
 */
static bool is_overdue(struct why *w, unsigned int i, unsigned int cpu)
{
	const struct why_task *t = current_of(w, i);

	return wants_reschedule(w, cpu) ||
	       (has_others(w, cpu) && t->s.policy != SCHED_FIFO && t->s.policy != SCHED_RR);
}

void why_check_soft_lockup(struct why *w, struct why_finding *f)
{
	for (unsigned int i = 0; i < w->vcpus; i++) {
		const struct why_vcpu *v = &w->vcpu[i];
		unsigned int cpu = why_cpu_of(w, i);
		uint64_t ns;

		if (v->samples < WHY_ENOUGH || v->kernel != v->samples ||
		    v->spinning == v->samples || v->irqs_off == v->samples ||
		    5 * v->interrupt >= 4 * v->samples)
			continue;
		ns = why_stuck_ns(w, i);
		if (ns < w->hang_ns || !current_of(w, i) || !is_overdue(w, i, cpu))
			continue;
		why_bad(f,
			"vCPU %u has been in the kernel for %.1f s without scheduling, although it "
			"should: %s, in %s.",
			i, why_seconds(ns), current_name(w, i), why_place(w, &v->stack));
		prove_cpu(w, f, i, ns);
		if (wants_reschedule(w, cpu))
			why_fact(w, f, "a reschedule was due at both looks (preempt count 0x%x)",
				 (unsigned int)why_now(w)->rq[cpu].preempt);
		if (has_others(w, cpu))
			why_fact(w, f, "%u tasks are to run on this processor",
				 (unsigned int)why_now(w)->rq[cpu].nr_running);
		return;
	}
	why_ok_if_sampled(w, f, "no vCPU stays in the kernel past a reschedule that is due");
}

/*
 * Counts the tasks that are ready to run on this processor. *longest is the one that has waited
 * longest.
 */
static unsigned int starving(struct why *w, unsigned int cpu, const struct why_task **longest)
{
	struct why_scene *s = why_now(w);
	unsigned int n = 0;

	*longest = NULL;
	for (size_t i = 0; i < s->n; i++) {
		const struct why_task *t = &s->task[i];

		if (t->s.running || t->s.state != 'R' || t->s.cpu != (int)cpu)
			continue;
		n++;
		if (!*longest || (t->quiet_ns != WHY_UNKNOWN && t->quiet_ns > (*longest)->quiet_ns))
			*longest = t;
	}
	return n;
}

/*
 * Returns whether a task that has run for long in all also had at least half of the time between the
 * looks. *ran: its time in ns; *time: the time between the looks by the run queues' clock.
 */
static bool had_half(struct why *w, const struct why_task *t, uint64_t *ran, uint64_t *time)
{
	const struct why_scene *b = why_before(w);
	const struct why_task *then = b ? why_task_of(b, t->t.pid) : NULL;

	if (!then || t->s.run_ns == LINUX_SCHED_UNKNOWN || t->s.run_ns < w->hang_ns ||
	    then->s.run_ns > t->s.run_ns)
		return false;
	*ran = t->s.run_ns - then->s.run_ns;
	*time = why_now(w)->clock - b->clock;
	return *time && 2 * *ran >= *time;
}

void why_check_user_loop(struct why *w, struct why_finding *f)
{
	const struct why_scene *b = why_before(w);
	for (unsigned int i = 0; i < w->vcpus && b; i++) {
		const struct why_vcpu *v = &w->vcpu[i];
		const struct why_task *t = current_of(w, i), *longest;
		uint64_t ran, time;
		unsigned int n;

		if (v->samples < WHY_ENOUGH || 10 * v->user < 9 * v->samples || !t ||
		    (t->s.policy != SCHED_FIFO && t->s.policy != SCHED_RR) || t->t.is_kthread ||
		    !had_half(w, t, &ran, &time))
			continue;
		n = starving(w, why_cpu_of(w, i), &longest);
		/* The others must have had no time for long. */
		if (!n || longest->quiet_ns == WHY_UNKNOWN || longest->quiet_ns < w->hang_ns)
			continue;
		why_bad(f,
			"%s loops in user space at a real-time priority and has had %.0f %% of "
			"vCPU %u; %u tasks wait for it.",
			why_task_name(t), 100.0 * (double)ran / (double)time, i, n);
		why_prove(w, f, "tid", t->t.pid);
		why_prove(w, f, "ran_ns", ran);
		why_prove(w, f, "of_ns", time);
		why_fact(w, f,
			 "its policy is %s, and all its time was in user space, between 0x%" PRIx64
			 " and 0x%" PRIx64,
			 t->s.policy == SCHED_FIFO ? "SCHED_FIFO" : "SCHED_RR", v->rip_low,
			 v->rip_high);
		why_fact(w, f, "%s is ready to run and last ran %.1f s ago", why_task_name(longest),
			 why_seconds(longest->quiet_ns));
		return;
	}
	if (!b)
		why_unknown(f, "it takes two looks");
	else
		why_ok_if_sampled(w, f, "no real-time task starves others from user space");
}

static uint64_t interrupts_of(struct why *w, unsigned int cpu)
{
	uint64_t at = why_percpu(w, "kstat", cpu), v;

	return at && why_read(w, at, LINUX_HANG_KSTAT_IRQS, &v) ? v : WHY_UNKNOWN;
}

/* Returns the kernel's thread that runs a processor's softirqs when there are many, or NULL. */
static const struct why_task *softirq_thread(struct why *w, unsigned int cpu)
{
	struct why_scene *s = why_now(w);
	char name[24];

	snprintf(name, sizeof(name), "ksoftirqd/%u", cpu);
	for (size_t i = 0; i < s->n; i++)
		if (s->task[i].t.is_kthread &&
		    !strncmp(s->task[i].t.comm, name, sizeof(s->task[i].t.comm)))
			return &s->task[i];
	return NULL;
}

/*
 * Finds a tasklet that schedules itself again: ksoftirqd has the processor, and runs tasklets
 * without end.
 */
static bool is_tasklet_storm(struct why *w, struct why_finding *f, unsigned int i)
{
	const struct why_scene *b = why_before(w);
	const struct why_vcpu *v = &w->vcpu[i];
	unsigned int cpu = why_cpu_of(w, i);
	const struct why_task *t = softirq_thread(w, cpu);
	const struct why_rq *now = &why_now(w)->rq[cpu], *before = b ? &b->rq[cpu] : NULL;
	uint64_t ran, time, tasklets, all;

	if (!t || !before || !had_half(w, t, &ran, &time) || 10 * v->interrupt < 8 * v->samples ||
	    now->softirqs == WHY_UNKNOWN || before->softirqs == WHY_UNKNOWN)
		return false;
	tasklets = (uint32_t)(now->tasklets - before->tasklets);
	all = (uint32_t)(now->softirqs - before->softirqs);
	if (10 * tasklets < 9 * all || tasklets < 100)
		return false;
	why_bad(f,
		"Tasklets on vCPU %u are scheduled again and again: %s has run them %" PRIu64
		" times between the looks, and had the processor for %.0f %% of the time.",
		i, why_task_name(t), tasklets,
		ran < time ? 100.0 * (double)ran / (double)time : 100.0);
	why_prove(w, f, "vcpu", i);
	why_prove(w, f, "tid", t->t.pid);
	why_prove(w, f, "softirqs", tasklets);
	why_prove(w, f, "ran_ns", ran);
	why_prove(w, f, "of_ns", time);
	why_fact(w, f,
		 "%" PRIu64 " of %" PRIu64
		 " softirqs between the looks ran tasklets, and %s has run for %.1f s in all",
		 tasklets, all, why_task_name(t), why_seconds(t->s.run_ns));
	return true;
}

void why_check_irq_storm(struct why *w, struct why_finding *f)
{
	for (unsigned int i = 0; i < w->vcpus; i++) {
		const struct why_vcpu *v = &w->vcpu[i];
		uint64_t ns, n;

		if (v->samples >= WHY_ENOUGH && is_tasklet_storm(w, f, i))
			return;
		if (v->samples < WHY_ENOUGH || 10 * v->interrupt < 9 * v->samples || v->spinning)
			continue;
		ns = why_stuck_ns(w, i);
		if (ns < w->hang_ns)
			continue;
		n = interrupts_of(w, why_cpu_of(w, i));
		why_bad(f,
			"vCPU %u has spent %" PRIu64 " of %" PRIu64
			" samples in interrupts and softirqs, and %s has not moved for %.1f s: in "
			"%s.",
			i, v->interrupt, v->samples, current_name(w, i), why_seconds(ns),
			why_place(w, &v->stack));
		prove_cpu(w, f, i, ns);
		if (n != WHY_UNKNOWN)
			why_prove(w, f, "interrupts", n);
		return;
	}
	why_ok_if_sampled(w, f, "no vCPU spends its time in interrupts");
}

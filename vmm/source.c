/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * source: what ends the periods of one vCPU's events, and the sample that follows.
 *
 * Each source belongs to its vCPU's thread. The signal handler touches `due` alone.
 */
#include "base/clock.h"
#include "vmm/machine.h"

#include <string.h>

static int arm(struct vcpu *v, unsigned int i, struct err *e)
{
	const struct vm_event *ev = &v->vm->cfg.event[i];
	struct source *s = &v->source[i];
	uint64_t now = clock_mono_ns();
	int ret = 0;

	s->period = atomic_load_explicit(&v->vm->control.period[i], memory_order_relaxed);
	s->due = 0;
	switch (ev->kind) {
	case VM_EVENT_WALL:
		ret = trigger_init(&s->trigger, VCPU_KICK_SIGNAL, (int)i, s->period, ev->jitter,
				   now * 0x9e3779b97f4a7c15ull + v->index, e);
		if (!ret)
			trigger_start(&s->trigger, now);
		break;
	case VM_EVENT_CPU:
	case VM_EVENT_PERF:
	case VM_EVENT_EXIT:
		break;
	}
	s->armed = !ret;
	return ret;
}

static void disarm(struct vcpu *v, unsigned int i)
{
	struct source *s = &v->source[i];

	if (!s->armed)
		return;
	trigger_deinit(&s->trigger);
	s->armed = false;
	s->due = 0;
}

static bool wants(const struct vcpu *v, unsigned int i)
{
	return atomic_load_explicit(&v->vm->control.armed[i], memory_order_relaxed);
}

int sources_start(struct vcpu *v, struct err *e)
{
	int ret = 0;

	v->control_seen = atomic_load_explicit(&v->vm->control.changes, memory_order_acquire);
	v->stack_max = atomic_load_explicit(&v->vm->control.stack_max, memory_order_relaxed);
	for (unsigned int i = 0; !ret && i < v->vm->cfg.nevents; i++)
		if (wants(v, i))
			ret = arm(v, i, e);
	return ret;
}

void sources_stop(struct vcpu *v)
{
	for (unsigned int i = 0; i < v->vm->cfg.nevents; i++)
		disarm(v, i);
}

void sources_follow(struct vcpu *v)
{
	/* Before the values are read: a change that comes meanwhile is followed next time. */
	v->control_seen = atomic_load_explicit(&v->vm->control.changes, memory_order_acquire);
	v->stack_max = atomic_load_explicit(&v->vm->control.stack_max, memory_order_relaxed);
	for (unsigned int i = 0; i < v->vm->cfg.nevents; i++) {
		struct source *s = &v->source[i];
		struct err e = { 0 };

		if (s->armed == wants(v, i) &&
		    (!s->armed || s->period == atomic_load_explicit(&v->vm->control.period[i],
								    memory_order_relaxed)))
			continue;
		disarm(v, i);
		if (wants(v, i) && arm(v, i, &e) < 0)
			machine_end(v->vm, VM_END_ERROR, v, NULL, &e);
	}
}

void source_signalled(struct vcpu *v, const siginfo_t *info)
{
	if (info->si_code == SI_TIMER)
		v->source[info->si_value.sival_int].due = 1;
}

void source_take_timer(struct vcpu *v, unsigned int i, uint64_t now)
{
	struct source *s = &v->source[i];
	struct capture_cause cause = {
		.now = now,
		.reason = SAMPLE_TIMER,
		.event = (uint8_t)i,
	};

	/* A signal that was queued when its deadline had been served already. */
	if (cause.now < s->trigger.deadline_ns)
		return;
	hist_add(&v->stats.latency_ns, cause.now - s->trigger.deadline_ns);
	cause.missed = trigger_next(&s->trigger, cause.now);
	v->stats.overruns += cause.missed;
	cause.weight = (1 + (uint64_t)cause.missed) * s->period;
	capture_sample(v, &cause);
}

void sources_take(struct vcpu *v)
{
	for (unsigned int i = 0; i < v->vm->cfg.nevents; i++) {
		struct source *s = &v->source[i];
		uint64_t t0;

		if (!s->due)
			continue;
		s->due = 0;
		t0 = clock_mono_ns();
		source_take_timer(v, i, t0);
		hist_add(&v->stats.stop_ns, clock_mono_ns() - t0);
	}
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * source: ends the periods of one vCPU's events, and takes the samples.
 *
 * Each source belongs to its vCPU's thread. The signal handler writes only to the fields that
 * source_signalled() sets.
 */
#include "vmm/capture/source.h"

#include "base/clock.h"
#include "base/count.h"
#include "vmm/machine.h"
#include "vmm/capture/capture.h"
#include "vmm/capture/counter.h"
#include "vmm/capture/source_exit.h"
#include "vmm/capture/source_host.h"
#include "vmm/capture/trigger.h"
#include "vmm/vcpu_thread.h"

#include <stdio.h>
#include <string.h>

/*
 * An event in wall-clock time also notices when all vCPUs are halted with interrupts off. Without
 * such an event, this timer checks for that. One check counts as WATCH_LOOKS, so that the machine
 * ends after about a second.
 */
#define WATCH_NS 50000000u
#define WATCH_LOOKS 13u
#define WATCH_VALUE ((int)VM_MAX_EVENTS)

static struct trigger_rule source_rule(const struct vcpu *v, unsigned int i)
{
	return (struct trigger_rule){
		.period_ns = v->source[i].period,
		.jitter = v->vm->cfg.event[i].jitter,
		.seed = clock_mono_ns() * 0x9e3779b97f4a7c15ull + v->index + ((uint64_t)i << 32),
	};
}

static uint64_t thread_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* Opens the counter of event i, which does not count yet. */
static int source_open_counter(struct vcpu *v, unsigned int i, struct err *e)
{
	const struct vm_event *ev = &v->vm->cfg.event[i];
	struct source *s = &v->source[i];
	const struct trigger_rule rule = source_rule(v, i);
	struct vm_counter what = ev->counter;

	/* A rate applies to the first period only; a period that is set later replaces it. */
	what.freq = what.freq && s->period == ev->period;
	s->opened = s->period;
	return counter_open(&s->counter, &what, &rule, VCPU_KICK_SIGNAL, e);
}

static bool source_has_counter(const struct vm_event *ev)
{
	return ev->kind == VM_EVENT_PERF || ev->kind == VM_EVENT_HOST ||
	       (ev->kind == VM_EVENT_CPU && !ev->timer);
}

void source_open_all(struct vcpu *v)
{
	struct err why = { 0 };

	for (unsigned int i = 0; i < v->vm->cfg.nevents; i++) {
		struct source *s = &v->source[i];

		if (!source_has_counter(&v->vm->cfg.event[i]))
			continue;
		s->period = atomic_load_explicit(&v->vm->control.period[i], memory_order_relaxed);
		s->open_error = -source_open_counter(v, i, &why);
		if (s->open_error)
			snprintf(s->open_why, sizeof(s->open_why), "%s", why.text);
		err_clear(&why);
	}
}

int source_arm_counter(struct vcpu *v, unsigned int i, struct err *e)
{
	struct source *s = &v->source[i];
	struct err why = { 0 };
	int ret = 0;

	if (s->counter.fd > 0 && s->opened != s->period)
		counter_close(&s->counter);
	if (s->counter.fd <= 0 && s->open_error) {
		ret = err_set(&why, s->open_error, "%s", s->open_why);
		s->open_error = 0;
	} else if (s->counter.fd <= 0) {
		ret = source_open_counter(v, i, &why);
	}
	ret = ret ? ret : counter_start(&s->counter, &why);
	if (ret) {
		counter_close(&s->counter);
		return err_set(e, -ret, "vCPU %u: event %u: %s", v->index, i, why.text);
	}
	return 0;
}

static int arm_cpu_timer(struct vcpu *v, unsigned int i, struct err *e)
{
	const struct trigger_rule rule = source_rule(v, i);
	struct source *s = &v->source[i];
	int ret = trigger_init(&s->trigger, CLOCK_THREAD_CPUTIME_ID, VCPU_KICK_SIGNAL, (int)i,
			       &rule, e);

	if (!ret)
		trigger_start(&s->trigger, thread_cpu_ns());
	return ret;
}

static int source_arm(struct vcpu *v, unsigned int i, struct err *e)
{
	const struct vm_event *ev = &v->vm->cfg.event[i];
	struct source *s = &v->source[i];
	struct trigger_rule rule;
	int ret = 0;

	s->period = atomic_load_explicit(&v->vm->control.period[i], memory_order_relaxed);
	s->due = 0;
	rule = source_rule(v, i);
	switch (ev->kind) {
	case VM_EVENT_WALL:
		ret = trigger_init(&s->trigger, CLOCK_MONOTONIC, VCPU_KICK_SIGNAL, (int)i, &rule,
				   e);
		if (!ret)
			trigger_start(&s->trigger, clock_mono_ns());
		break;
	case VM_EVENT_CPU:
		ret = ev->timer ? arm_cpu_timer(v, i, e) : source_arm_counter(v, i, e);
		break;
	case VM_EVENT_PERF:
		ret = source_arm_counter(v, i, e);
		break;
	case VM_EVENT_HOST:
		ret = source_host_arm(v, i, &rule, e);
		break;
	case VM_EVENT_IO:
		break;
	case VM_EVENT_EXIT:
		s->exits = 0;
		trigger_init_count(&s->trigger, &rule);
		break;
	}
	s->armed = !ret;
	return ret;
}

static void source_disarm(struct vcpu *v, unsigned int i)
{
	struct source *s = &v->source[i];

	if (!s->armed) {
		counter_close(&s->counter);
		return;
	}
	trigger_deinit(&s->trigger);
	if (s->counter.fd > 0) {
		(void)counter_read(&s->counter);
		counter_note(&s->counter, &v->stats.counter[i]);
	}
	counter_close(&s->counter);
	s->armed = false;
	s->due = 0;
}

/* Runs the watch timer exactly while no event in wall-clock time is armed. */
static int set_watch(struct vcpu *v, struct err *e)
{
	bool want = v->vm->cfg.nevents != 0;

	for (unsigned int i = 0; i < v->vm->cfg.nevents; i++)
		if (v->vm->cfg.event[i].kind == VM_EVENT_WALL && v->source[i].armed)
			want = false;
	if (want == v->watch.armed)
		return 0;
	if (want) {
		const struct trigger_rule rule = { .period_ns = WATCH_NS };
		int ret = trigger_init(&v->watch, CLOCK_MONOTONIC, VCPU_KICK_SIGNAL, WATCH_VALUE,
				       &rule, e);

		if (!ret)
			trigger_start(&v->watch, clock_mono_ns());
		return ret;
	}
	trigger_deinit(&v->watch);
	return 0;
}

static bool source_is_wanted(const struct vcpu *v, unsigned int i)
{
	return atomic_load_explicit(&v->vm->control.armed[i], memory_order_relaxed);
}

int source_start_all(struct vcpu *v, struct err *e)
{
	int ret = 0;

	v->control_seen = atomic_load_explicit(&v->vm->control.changes, memory_order_acquire);
	v->stack_max = atomic_load_explicit(&v->vm->control.stack_max, memory_order_relaxed);
	for (unsigned int i = 0; !ret && i < v->vm->cfg.nevents; i++)
		if (source_is_wanted(v, i))
			ret = source_arm(v, i, e);
	return ret ? ret : set_watch(v, e);
}

void source_stop_all(struct vcpu *v)
{
	for (unsigned int i = 0; i < v->vm->cfg.nevents; i++)
		source_disarm(v, i);
	trigger_deinit(&v->watch);
}

/*
 * Lengthens the period of a running clock. Returns false if the event has to be restarted instead.
 */
static bool lengthen(struct vcpu *v, unsigned int i)
{
	struct source *s = &v->source[i];
	uint64_t period = atomic_load_explicit(&v->vm->control.period[i], memory_order_relaxed);

	if (v->vm->cfg.event[i].kind != VM_EVENT_WALL || !s->armed || !source_is_wanted(v, i) ||
	    period < s->period)
		return false;
	s->period = period;
	trigger_lengthen(&s->trigger, period);
	return true;
}

static void source_take(struct vcpu *v, unsigned int i, uint64_t now);

/*
 * Takes the sample of a deadline that has passed, which stands for the time up to now; a new
 * period would forget it. On a busy host that is much time, because the kick and the deadline's
 * signal are delivered together.
 */
static void source_settle(struct vcpu *v, unsigned int i)
{
	enum vm_event_kind kind = v->vm->cfg.event[i].kind;

	if (v->source[i].armed && kind != VM_EVENT_EXIT && kind != VM_EVENT_IO)
		source_take(v, i, clock_mono_ns());
}

void source_update_all(struct vcpu *v)
{
	struct err e = { 0 };

	/* It is loaded before the values: a change that comes meanwhile is applied next time. */
	v->control_seen = atomic_load_explicit(&v->vm->control.changes, memory_order_acquire);
	v->stack_max = atomic_load_explicit(&v->vm->control.stack_max, memory_order_relaxed);
	for (unsigned int i = 0; i < v->vm->cfg.nevents; i++) {
		struct source *s = &v->source[i];

		if (s->armed == source_is_wanted(v, i) &&
		    (!s->armed || s->period == atomic_load_explicit(&v->vm->control.period[i],
								    memory_order_relaxed)))
			continue;
		source_settle(v, i);
		if (lengthen(v, i))
			continue;
		source_disarm(v, i);
		if (source_is_wanted(v, i) && source_arm(v, i, &e) < 0)
			machine_end(v->vm, VM_END_ERROR, v, NULL, &e);
	}
	if (set_watch(v, &e) < 0)
		machine_end(v->vm, VM_END_ERROR, v, NULL, &e);
}

uint8_t source_exit_of(const struct kvm_run *run, uint64_t *addr)
{
	*addr = run->exit_reason == KVM_EXIT_IO	    ? run->io.port
		: run->exit_reason == KVM_EXIT_MMIO ? run->mmio.phys_addr
						    : 0;
	return (uint8_t)(run->exit_reason < UINT8_MAX ? run->exit_reason : UINT8_MAX);
}

/* Stores the exit that is being handled, for VM_EVENT_HOST. */
static void source_note_exit(const struct vcpu *v, struct source *s)
{
	const struct kvm_run *run = v->run;

	if (v->vm->cfg.event[s - v->source].kind != VM_EVENT_HOST)
		return;
	s->exit = source_exit_of(run, &s->exit_addr);
}

static void note_due(const struct vcpu *v, struct source *s)
{
	s->device = v->device;
	s->span = (uint8_t)v->account.span;
	if (v->device)
		source_note_exit(v, s);
	s->due = 1;
}

void source_signalled(struct vcpu *v, const siginfo_t *info)
{
	/*
	 * SIGIO: a counter's own signal did not fit in the signal queue (fcntl(2), F_SETSIG); it
	 * may be any counter.
	 */
	bool any = info->si_signo == SIGIO;

	if (info->si_code == SI_TIMER && info->si_value.sival_int == WATCH_VALUE) {
		v->watch_due = 1;
	} else if (info->si_code == SI_TIMER) {
		note_due(v, &v->source[info->si_value.sival_int]);
	} else if (any || info->si_code == POLL_IN || info->si_code == POLL_HUP) {
		for (unsigned int i = 0; i < v->vm->cfg.nevents; i++) {
			struct source *s = &v->source[i];

			if (s->counter.fd <= 0 || (!any && s->counter.fd != info->si_fd))
				continue;
			note_due(v, s);
			counter_signalled(&s->counter);
		}
	}
}

bool source_sample_own(struct vcpu *v, struct source *s, const struct capture_cause *cause)
{
	if (++s->thinned < ring_keep_one_of(&v->ring)) {
		ring_drop(&v->ring);
		return false;
	}
	s->thinned = 0;
	return capture_sample(v, cause);
}

/* Takes a sample. If it is lost, its weight is added to the next one. */
static void source_sample(struct vcpu *v, struct source *s, struct capture_cause *cause)
{
	cause->weight += s->owed;
	s->owed = source_sample_own(v, s, cause) ? 0 : cause->weight;
}

void source_take_timer(struct vcpu *v, unsigned int i, uint64_t now)
{
	struct source *s = &v->source[i];
	/* now on the timer's clock: CPU time of the thread for CPU events */
	uint64_t at = v->vm->cfg.event[i].kind == VM_EVENT_CPU ? thread_cpu_ns() : now;
	struct capture_cause cause = {
		.now = now,
		.reason = SAMPLE_TIMER,
		.event = (uint8_t)i,
		.device = (uint8_t)s->device,
	};

	/* The signal was queued although its deadline had been handled already. */
	if (at < s->trigger.deadline_ns)
		return;
	hist_add(&v->stats.latency_ns, at - s->trigger.deadline_ns);
	cause.missed = trigger_next(&s->trigger, at);
	count_add(&v->stats.overruns, cause.missed);
	cause.weight = (1 + (uint64_t)cause.missed) * s->period;
	source_sample(v, s, &cause);
}

static void take_counter(struct vcpu *v, unsigned int i, uint64_t now)
{
	bool cpu = v->vm->cfg.event[i].kind == VM_EVENT_CPU;
	struct capture_cause cause = {
		.now = now,
		.reason = cpu ? SAMPLE_TIMER : SAMPLE_PMU,
		.event = (uint8_t)i,
		.device = (uint8_t)v->source[i].device,
	};

	if (counter_handle_signal(&v->source[i].counter, &cause.weight, &cause.missed)) {
		count_add(&v->stats.overruns, cause.missed);
		source_sample(v, &v->source[i], &cause);
	}
	counter_note(&v->source[i].counter, &v->stats.counter[i]);
	counter_resume(&v->source[i].counter);
}

static void source_take(struct vcpu *v, unsigned int i, uint64_t now)
{
	const struct vm_event *ev = &v->vm->cfg.event[i];

	if (ev->kind == VM_EVENT_EXIT)
		source_take_exit(v, i, now);
	else if (ev->kind == VM_EVENT_IO)
		source_take_io(v, i, now);
	else if (ev->kind == VM_EVENT_HOST)
		source_take_host(v, i, now);
	else if (ev->kind == VM_EVENT_PERF || (ev->kind == VM_EVENT_CPU && !ev->timer))
		take_counter(v, i, now);
	else
		source_take_timer(v, i, now);
}

static void source_take_due(struct vcpu *v, unsigned int i)
{
	struct source *s = &v->source[i];
	uint64_t t0 = clock_mono_ns();

	s->due = 0;
	source_take(v, i, t0);
	s->device = 0; /* no device works now; a signal in between has stored that too */
	hist_add(&v->stats.stop_ns, clock_mono_ns() - t0);
}

void source_take_all(struct vcpu *v)
{
	/* First the exits, whose time is over. */
	for (unsigned int i = 0; i < v->vm->cfg.nevents; i++)
		if (v->source[i].due && v->vm->cfg.event[i].kind == VM_EVENT_EXIT)
			source_take_due(v, i);
	for (unsigned int i = 0; i < v->vm->cfg.nevents; i++)
		if (v->source[i].due)
			source_take_due(v, i);
	if (v->watch_due) {
		v->watch_due = 0;
		capture_watch(v, WATCH_LOOKS);
		trigger_next(&v->watch, clock_mono_ns());
	}
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/attach_state.h"

#include "base/clock.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Looks at a thread that was asked to stop: some 20 us, in which one that runs a guest does. */
#define LOOKS 100u
/* A thread without a processor is looked at so often for so long, and then asked to stop. */
#define AGAIN_NS 500000u
#define PATIENCE_NS 50000000u
/* A sampler without deadlines looks at control so often. */
#define IDLE_POLL_NS 100000000u

/* Follow what control asks for; returns whether samples are taken at all. */
static bool follow(struct attach *a)
{
	struct vm *vm = a->vm;
	uint64_t period = vm_period(vm, 0), now = clock_mono_ns();
	unsigned int seen = atomic_load_explicit(&vm->control.changes, memory_order_acquire);
	bool armed = vm_event_is_armed(vm, 0), again = armed && !a->armed;

	a->armed = armed;
	for (unsigned int i = 0; i < vm->nvcpus; i++) {
		struct vcpu *v = &vm->vcpu[i];
		struct trigger *t = &a->trigger[i];

		if (v->control_seen == seen && t->period_ns == period && !again)
			continue;
		v->control_seen = seen;
		v->stack_max = atomic_load_explicit(&vm->control.stack_max, memory_order_relaxed);
		/* Time in which it was not armed is nobody's. */
		if (t->period_ns == period && !again)
			continue;
		t->period_ns = v->source[0].period = period;
		t->jitter = a->cfg.event.jitter;
		t->rng = t->rng ? t->rng : (now * 0x9e3779b97f4a7c15ull + i) | 1;
		t->start_ns = now;
		t->period_no = 0;
		trigger_advance(t, now);
	}
	return armed;
}

/* Of a sample that is taken now; t is moved on to the next deadline. *late: how late it is. */
static struct capture_cause cause_of(struct trigger *t, uint64_t *late)
{
	struct capture_cause cause = { .now = clock_mono_ns(), .reason = SAMPLE_TIMER };

	/* Control may have moved the deadline since the thread was asked. */
	*late = cause.now > t->deadline_ns ? cause.now - t->deadline_ns : 0;
	cause.missed = trigger_advance(t, cause.now);
	cause.weight = (1 + (uint64_t)cause.missed) * t->period_ns;
	return cause;
}

static void note_cause(struct vcpu *v, const struct capture_cause *cause, uint64_t late)
{
	hist_add(&v->stats.latency_ns, late);
	v->stats.overruns += cause->missed;
}

/* It stands still: that is what all of this is for. */
static void take_sample(struct attach *a, unsigned int i)
{
	struct vcpu *v = &a->vm->vcpu[i];
	struct tracee *tracee = &a->tracee[i];
	uint64_t late;
	struct capture_cause cause = cause_of(&a->trigger[i], &late);
	bool in_run;
	int fd;

	note_cause(v, &cause, late);
	a->facts.by_ptrace++;
	gmem_remote_expect(&a->capture, &a->expected[i]);
	in_run = tracer_is_in_run(tracee, &fd);
	/* Elsewhere the page holds what the guest was at when it left, perhaps a sample ago. */
	if (!in_run) {
		a->facts.in_vmm++;
		attach_unmark(a, i);
	} else if (regs_page_is_fresh(v->run)) {
		peek_capture_compare(&a->peek, v);
	}
	if (regs_page_is_fresh(v->run))
		capture_sample(v, &cause);
	else
		ring_drop(&v->ring);
	attach_mark(a, i);
	tracer_release(tracee, true);
	hist_add(&v->stats.stop_ns, clock_mono_ns() - cause.now);
}

static void attend(struct attach *a)
{
	for (unsigned int i = 0; i < a->ntracees; i++)
		if (tracer_has_stopped(&a->tracee[i]))
			take_sample(a, i);
}

/*
 * By BPF; false: it has to be stopped for this one. A thread that has no processor is not asked to
 * stop when it gets one, as it might then stand until we get ours: it is looked at again soon.
 */
static bool peek_sample(struct attach *a, unsigned int i)
{
	struct vcpu *v = &a->vm->vcpu[i];
	struct trigger t = a->trigger[i];
	enum peek_status s = peek_capture_take(&a->peek, v);
	struct capture_cause cause;
	uint64_t late;

	a->again[i] = 0;
	if (s == PEEK_WAITING) {
		cause.now = clock_mono_ns();
		if (cause.now > t.deadline_ns + PATIENCE_NS)
			return false;
		a->again[i] = cause.now + AGAIN_NS;
		return true;
	}
	if (s != PEEK_TAKEN)
		return false;
	cause = cause_of(&t, &late);
	if (!peek_capture_sample(&a->peek, v, &cause))
		return false;
	note_cause(v, &cause, late);
	a->trigger[i] = t;
	a->facts.by_bpf++;
	hist_add(&v->stats.stop_ns, a->peek.peek.taken_ns);
	return true;
}

/*
 * A thread that runs a guest stops at once, one that the host has taken the processor
 * from when it gets it back: that is not waited for, the others' deadlines go on.
 */
static void ask(struct attach *a, unsigned int i)
{
	struct tracee *t = &a->tracee[i];

	if (peek_sample(a, i))
		return;
	if (tracer_ask(t) < 0)
		return;
	for (unsigned int k = 0; k < LOOKS; k++)
		if (tracer_has_stopped(t)) {
			take_sample(a, i);
			return;
		}
}

static uint64_t due(const struct attach *a, unsigned int i)
{
	uint64_t deadline = a->trigger[i].deadline_ns;

	return a->again[i] > deadline ? a->again[i] : deadline;
}

/* The vCPU whose deadline is next, of those that have not been asked; -1: all have. */
static int next_vcpu(const struct attach *a)
{
	int best = -1;

	for (unsigned int i = 0; i < a->vm->nvcpus; i++)
		if (!a->tracee[i].asked && !a->tracee[i].gone &&
		    (best < 0 || due(a, i) < due(a, (unsigned int)best)))
			best = (int)i;
	return best;
}

/* Until then, or until something happens to a thread that we hold. */
static void wait_until(struct attach *a, uint64_t deadline)
{
	struct pollfd p[2] = { { .fd = a->child_fd, .events = POLLIN },
			       { .fd = a->wake_fd, .events = POLLIN } };
	struct signalfd_siginfo info;
	uint64_t now = clock_mono_ns(), word;
	uint64_t left = deadline > now ? deadline - now : 0;
	struct timespec ts = { (time_t)(left / NSEC_PER_SEC), (long)(left % NSEC_PER_SEC) };

	if (ppoll(p, 2, &ts, NULL) <= 0)
		return;
	while (read(a->child_fd, &info, sizeof(info)) == sizeof(info))
		;
	(void)!read(a->wake_fd, &word, sizeof(word));
	attend(a);
}

static bool all_gone(const struct attach *a)
{
	for (unsigned int i = 0; i < a->ntracees; i++)
		if (!a->tracee[i].gone)
			return false;
	return true;
}

void attach_sample(struct attach *a)
{
	struct vm *vm = a->vm;

	atomic_store(&vm->first_entry_ns, clock_mono_ns());
	while (!atomic_load_explicit(&vm->stop, memory_order_relaxed)) {
		bool armed = follow(a);
		int i = next_vcpu(a);
		uint64_t now = clock_mono_ns();

		if (!armed || i < 0)
			wait_until(a, now + IDLE_POLL_NS);
		else if (now < due(a, (unsigned int)i))
			wait_until(a, due(a, (unsigned int)i));
		else
			ask(a, (unsigned int)i);
		if (all_gone(a))
			machine_end(vm, VM_END_GONE, NULL, NULL, NULL);
	}
}

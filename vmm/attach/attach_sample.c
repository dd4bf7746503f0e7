/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/attach_state.h"

#include "base/clock.h"
#include "base/count.h"
#include "vmm/attach/attach_host.h"

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
/* So often all threads are looked at even if no SIGCHLD tells of them: no stop may go unseen. */
#define ATTEND_NS 20000000u

/* Follow what control asks for; returns whether samples are taken at all. */
static bool attach_follow(struct attach *a)
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
		/* No sample stands for the time in which the event was not armed. */
		if (t->period_ns == period && !again)
			continue;
		t->period_ns = v->source[0].period = period;
		t->jitter = a->cfg.event.jitter;
		t->rng = t->rng ? t->rng : (now * 0x9e3779b97f4a7c15ull + i) | 1;
		t->start_ns = now;
		t->period_no = 0;
		trigger_advance(t, now);
		if (a->host && armed)
			attach_host_begin(a, i, now);
	}
	return armed;
}

/* Of a sample that is taken now; t is moved on to the next deadline. *late: how late it is. */
static struct capture_cause attach_cause(struct trigger *t, uint64_t *late)
{
	struct capture_cause cause = { .now = clock_mono_ns(), .reason = SAMPLE_TIMER };

	/* Control may have moved the deadline since the thread was asked. */
	*late = cause.now > t->deadline_ns ? cause.now - t->deadline_ns : 0;
	cause.missed = trigger_advance(t, cause.now);
	cause.weight = (1 + (uint64_t)cause.missed) * t->period_ns;
	return cause;
}

/* Is there anything to choose? */
static bool is_choosing(const struct attach *a)
{
	return a->cfg.technique == ATTACH_AUTO && attach_peeks(a);
}

static void note_choice(struct attach *a, unsigned int i, uint32_t missed, bool hit)
{
	if (is_choosing(a))
		choice_note(&a->choice, a->first[i], 1 + (uint64_t)missed, hit);
}

static void note_cause(struct vcpu *v, const struct capture_cause *cause, uint64_t late)
{
	hist_add(&v->stats.latency_ns, late);
	count_add(&v->stats.overruns, cause->missed);
}

/*
 * The KVM_RUN that the last stop interrupted has not been entered again: the thread has had hardly
 * any CPU time since, and the guest has not run. Wait longer before each next try, or the stops
 * would take all of the thread's time. The next sample's weight covers the time that has passed.
 */
static void attach_postpone(struct attach *a, unsigned int i)
{
	uint64_t wait = a->trigger[i].period_ns << a->too_soon[i];

	a->facts.too_soon++;
	if (wait < PATIENCE_NS)
		a->too_soon[i]++;
	else
		wait = PATIENCE_NS;
	a->again[i] = clock_mono_ns() + wait;
}

/* The thread has stopped: take the sample that is due, and let the thread go on. */
static void attach_take_sample(struct attach *a, unsigned int i)
{
	struct vcpu *v = &a->vm->vcpu[i];
	const struct kvm_run *page = a->page[i];
	struct tracee *tracee = &a->tracee[i];
	uint64_t late;
	struct capture_cause cause;
	struct capture_view view;
	enum tracer_place place;
	int fd;

	if (a->host) {
		attach_host_take(a, i);
		return;
	}
	place = tracer_place_of(tracee, &fd);
	if (place == TRACER_BEFORE_RUN) {
		attach_postpone(a, i);
		tracer_release(tracee);
		return;
	}
	if (a->too_soon[i])
		a->too_soon[i]--;
	cause = attach_cause(&a->trigger[i], &late);
	note_cause(v, &cause, late);
	note_choice(a, i, cause.missed, false);
	a->facts.by_ptrace++;
	gmem_remote_expect(&a->capture, &a->expected[i]);
	/* Elsewhere the page holds what the guest was at when it left, perhaps a sample ago. */
	if (place == TRACER_ELSEWHERE) {
		a->facts.in_vmm++;
		attach_unmark(a, i);
	} else if (a->peek && regs_page_is_fresh(page)) {
		pvm_peek_ops()->compare(a->peek, i, page);
	}
	if (regs_page_is_fresh(page)) {
		view = capture_view_of_run(page, &a->capture_mem);
		capture_sample_of(v, &view, &cause);
	} else {
		ring_drop(&v->ring);
	}
	attach_mark(a, i);
	tracer_release(tracee);
	hist_add(&v->stats.stop_ns, clock_mono_ns() - cause.now);
}

static void attach_attend(struct attach *a)
{
	a->attended_ns = clock_mono_ns();
	for (unsigned int i = 0; i < a->ntracees; i++)
		if (tracer_has_stopped(&a->tracee[i]))
			attach_take_sample(a, i);
}

/*
 * By BPF; false: it has to be stopped for this one. A thread that has no processor is not asked to
 * stop when it gets one, as it might then stand until we get ours: it is looked at again soon.
 */
static bool peek_sample(struct attach *a, unsigned int i)
{
	struct vcpu *v = &a->vm->vcpu[i];
	struct trigger t = a->trigger[i];
	uint64_t late, taken_ns = 0;
	struct capture_cause cause;
	enum peek_status s;

	a->again[i] = 0;
	if (!a->peek)
		return false;
	s = pvm_peek_ops()->take(a->peek, v, &taken_ns);
	if (s == PEEK_WAITING) {
		cause.now = clock_mono_ns();
		if (cause.now > t.deadline_ns + PATIENCE_NS)
			return false;
		a->again[i] = cause.now + AGAIN_NS;
		return true;
	}
	if (s != PEEK_TAKEN)
		return false;
	cause = attach_cause(&t, &late);
	if (!pvm_peek_ops()->sample(a->peek, v, &cause))
		return false;
	note_cause(v, &cause, late);
	note_choice(a, i, cause.missed, true);
	a->trigger[i] = t;
	a->facts.by_bpf++;
	hist_add(&v->stats.stop_ns, taken_ns);
	return true;
}

/*
 * A thread that runs a guest stops at once, one that the host has taken the processor
 * from when it gets it back: that is not waited for, the others' deadlines go on.
 */
static void attach_try(struct attach *a, unsigned int i)
{
	struct tracee *t = &a->tracee[i];

	if (a->host && !attach_host_is_due(a, i))
		return;
	a->first[i] = is_choosing(a) ? choice_next(&a->choice) : CHOICE_BPF;
	if (a->first[i] == CHOICE_BPF && peek_sample(a, i))
		return;
	a->again[i] = 0;
	if (tracer_ask(t) < 0)
		return;
	for (unsigned int k = 0; k < LOOKS; k++)
		if (tracer_has_stopped(t)) {
			attach_take_sample(a, i);
			return;
		}
}

static uint64_t attach_due(const struct attach *a, unsigned int i)
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
		    (best < 0 || attach_due(a, i) < attach_due(a, (unsigned int)best)))
			best = (int)i;
	return best;
}

/*
 * Until then, or until something happens to a thread that we hold. Also where that has passed: others'
 * stops are seen to before the next thread is asked.
 */
static void attach_wait_until(struct attach *a, uint64_t deadline)
{
	struct pollfd p[2] = { { .fd = a->child_fd, .events = POLLIN },
			       { .fd = a->wake_fd, .events = POLLIN } };
	struct signalfd_siginfo info;
	uint64_t now = clock_mono_ns(), word;
	uint64_t left = deadline > now ? deadline - now : 0;
	struct timespec ts;

	left = left < ATTEND_NS ? left : ATTEND_NS;
	ts = (struct timespec){ .tv_nsec = (long)left };
	if (ppoll(p, 2, &ts, NULL) > 0) {
		while (read(a->child_fd, &info, sizeof(info)) == sizeof(info))
			;
		(void)!read(a->wake_fd, &word, sizeof(word));
	} else if (clock_mono_ns() - a->attended_ns < ATTEND_NS) {
		return;
	}
	attach_attend(a);
}

static bool attach_all_gone(const struct attach *a)
{
	for (unsigned int i = 0; i < a->ntracees; i++)
		if (!a->tracee[i].gone)
			return false;
	return true;
}

void attach_stand_by(struct attach *a)
{
	while (!atomic_load(&a->go)) {
		attach_rest_if_asked(a);
		attach_wait_until(a, clock_mono_ns() + IDLE_POLL_NS);
	}
}

void attach_sample(struct attach *a)
{
	struct vm *vm = a->vm;

	atomic_store(&vm->first_entry_ns, clock_mono_ns());
	while (!atomic_load_explicit(&vm->stop, memory_order_relaxed)) {
		uint64_t when;
		bool armed;
		int i;

		attach_rest_if_asked(a);
		armed = attach_follow(a);
		i = next_vcpu(a);
		when = armed && i >= 0 ? attach_due(a, (unsigned int)i)
				       : clock_mono_ns() + IDLE_POLL_NS;
		attach_wait_until(a, when);
		/* Threads, deadlines and control may have changed meanwhile. */
		armed = attach_follow(a);
		i = next_vcpu(a);
		if (armed && i >= 0 && attach_due(a, (unsigned int)i) <= clock_mono_ns())
			attach_try(a, (unsigned int)i);
		if (attach_all_gone(a))
			machine_end(vm, VM_END_GONE, NULL, NULL, NULL);
	}
}

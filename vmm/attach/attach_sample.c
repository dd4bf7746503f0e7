/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/attach_sample.h"

#include "base/clock.h"
#include "base/count.h"
#include "vmm/attach/attach_again.h"
#include "vmm/attach/attach_hold.h"
#include "vmm/attach/attach_host.h"
#include "vmm/attach/attach_more.h"
#include "vmm/attach/attach_suspend.h"
#include "vmm/capture/capture.h"

#include <sys/signalfd.h>
#include <unistd.h>

/*
 * Number of checks of a thread that was asked to stop: about 20 us, in which a thread that runs a
 * guest stops.
 */
#define LOOKS 100u
/*
 * A thread without a processor is checked at intervals of AGAIN_NS for PATIENCE_NS, and then asked
 * to stop.
 */
#define AGAIN_NS 500000u
#define PATIENCE_NS 50000000u
/* Interval at which all threads are checked even without SIGCHLD, so that no stop is missed. */
#define ATTEND_NS 20000000u

/*
 * Returns the cause of a sample that is taken now, and advances t to the next deadline. Stores how
 * late the sample is, in ns, in *late.
 */
static struct capture_cause attach_cause(struct trigger *t, uint64_t *late)
{
	const uint64_t now = clock_mono_ns();

	/* Control may have moved the deadline since the thread was asked. */
	*late = sampler_late(t, now);
	return sampler_cause(t, now, now);
}

/* Returns whether the technique is chosen for each sample. */
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
 * Postpones the sample, because the KVM_RUN that the last stop interrupted has not been entered
 * again: the thread has had hardly any CPU time since, and the guest has not run. The delay grows
 * with each try, because the stops would otherwise use up the thread's time. The weight of the next
 * sample covers the time that has passed.
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

void attach_begin_sample(struct attach *a, unsigned int i, struct capture_cause *cause)
{
	uint64_t late;

	*cause = attach_cause(&a->trigger[i], &late);
	note_cause(&a->vm->vcpu[i], cause, late);
	note_choice(a, i, cause->missed, false);
}

void attach_note_first(struct attach *a, unsigned int i, uint64_t now)
{
	struct attach_facts *f = &a->facts;
	struct attach_look_times t = { .delay = a->delay_at_start[i] };

	if (f->first_ns || !a->cfg.follows)
		return;
	(void)attach_look_times(a, i, &t);
	f->first_ns = now;
	f->first_waited_ns = t.delay - a->delay_at_start[i];
	f->first_own_waited_ns = attach_look_own_delay() - a->own_delay_at_start;
}

void attach_begin_reads(struct attach *a, unsigned int i)
{
	a->absent_before = a->capture.absent;
	gmem_remote_prefetch(&a->capture, &a->expected[i]);
}

void attach_end_reads(struct attach *a)
{
	a->facts.absent += a->capture.absent != a->absent_before;
}

void attach_postpone_look(struct attach *a, unsigned int i)
{
	const uint64_t period = a->trigger[i].period_ns;

	a->again[i] = clock_mono_ns() + (period < PATIENCE_NS ? period : PATIENCE_NS);
}

/* Takes the sample of a vCPU whose thread is held. */
static void capture_stopped(struct attach *a, unsigned int i, enum tracer_place place,
			    const struct capture_cause *cause)
{
	struct vcpu *v = &a->vm->vcpu[i];
	struct capture_view view;

	a->facts.in_vmm += place == TRACER_ELSEWHERE;
	if (!regs_page_is_fresh(a->page[i])) {
		ring_drop(&v->ring);
		return;
	}
	attach_find_memory_again(a, i);
	if (place != TRACER_ELSEWHERE && attach_look_stopped(a, i, a->seen[i])) {
		attach_look_skip(a, i, ATTACH_SKIP_UNSTARTED, 1 + cause->missed);
		return;
	}
	view = capture_view_of_run(a->page[i], &a->capture_mem);
	if (capture_sample_of(v, &view, cause))
		attach_note_first(a, i, cause->now);
}

/* Takes the sample that is due from a thread that has stopped, and resumes the thread. */
static void attach_take_sample(struct attach *a, unsigned int i)
{
	struct vcpu *v = &a->vm->vcpu[i];
	const struct kvm_run *page = a->page[i];
	struct tracee *tracee = &a->tracee[i];
	struct capture_cause cause;
	enum tracer_place place;
	int fd;

	a->facts.thread_stops++;
	if (a->host) {
		attach_host_sample(a, i);
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
	attach_begin_sample(a, i, &cause);
	attach_begin_reads(a, i);
	a->facts.by_ptrace++;
	/*
	 * Outside of KVM_RUN the page has the registers of the last exit, perhaps from before the
	 * last sample.
	 */
	if (place == TRACER_ELSEWHERE)
		attach_unmark(a, i);
	else if (a->peek && regs_page_is_fresh(page))
		pvm_peek_ops()->compare(a->peek, i, page);
	if (place == TRACER_ELSEWHERE && attach_look_stopped_away(a, i))
		attach_look_skip(a, i, ATTACH_SKIP_PAUSED, 1 + cause.missed);
	else
		capture_stopped(a, i, place, &cause);
	attach_end_reads(a);
	attach_mark(a, i);
	tracer_release(tracee);
	hist_add(&v->stats.stop_ns, clock_mono_ns() - cause.now);
}

static void attach_attend(struct attach *a)
{
	a->attended_ns = clock_mono_ns();
	for (unsigned int i = 0; i < a->ntracees; i++) {
		if (!tracer_has_stopped(&a->tracee[i]))
			continue;
		/*
		 * The period is 0 until control was read: then this is a late stop of the search
		 * for vCPUs.
		 */
		if (a->trigger[i].period_ns)
			attach_take_sample(a, i);
		else
			tracer_release(&a->tracee[i]);
	}
	follow_handle_stops(&a->follow);
	attach_handle_strays(a);
	attach_more_handle_stop(a);
}

/*
 * Takes the sample by BPF. Returns false if the thread must be stopped for it. A thread without a
 * processor is not asked to stop, because it might then wait for this thread to get a processor; it
 * is checked again soon.
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
	attach_note_first(a, i, cause.now);
	a->trigger[i] = t;
	a->facts.by_bpf++;
	a->look[i].away_ns = 0;
	hist_add(&v->stats.stop_ns, taken_ns);
	return true;
}

/*
 * Takes the sample that is due from a thread that sleeps, or postpones it. Returns false if the
 * thread must be stopped.
 */
static bool look_sample(struct attach *a, unsigned int i)
{
	/* A requested stop has not happened yet. */
	if (a->tracee[i].asked)
		return false;
	a->seen[i] = attach_look_at(a, i);
	return a->host ? attach_host_look(a, i, a->seen[i]) : attach_look_sample(a, i, a->seen[i]);
}

/*
 * Takes the sample that is due, by the technique that is tried first. A thread that runs a guest
 * stops at once. One from which the host has taken the processor stops when it gets it back; this
 * is not waited for, because other vCPUs have deadlines, too.
 */
static void attach_try(struct attach *a, unsigned int i)
{
	struct tracee *t = &a->tracee[i];

	a->first[i] = is_choosing(a) ? choice_next(&a->choice) : CHOICE_BPF;
	if (!a->host && a->first[i] == CHOICE_BPF && peek_sample(a, i))
		return;
	a->again[i] = 0;
	if (look_sample(a, i))
		return;
	if (tracer_request_stop(t) < 0)
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

/*
 * Returns the vCPU with the next deadline among those whose threads were not asked to stop, or -1.
 */
static int next_vcpu(const struct attach *a)
{
	int best = -1;

	for (unsigned int i = 0; i < a->vm->nvcpus; i++)
		if (!a->tracee[i].asked && !a->tracee[i].gone &&
		    (best < 0 || attach_due(a, i) < attach_due(a, (unsigned int)best)))
			best = (int)i;
	return best;
}

/* -- the driver of the sampler ---------------------------------------------------------------- */

/*
 * Begins a turn. Before vm_start() no thread is held, but the signals of all threads pass through
 * this one, so turns are taken until vm->stop.
 */
static bool attach_begin_turn(void *ctx)
{
	struct attach *a = ctx;
	struct vm *vm = a->vm;
	const bool stop = atomic_load(&vm->stop);

	if ((stop || atomic_load(&a->sampler.go)) && !atomic_load(&vm->first_entry_ns)) {
		atomic_store(&vm->first_entry_ns, clock_mono_ns());
		a->facts.go_ns = clock_mono_ns();
		attach_release_followed(a);
	}
	if (stop)
		return false;
	/*
	 * This is done before stops are handled, because it restarts the periods and makes the
	 * counters' signals known again.
	 */
	attach_suspend_if_requested(a);
	return true;
}

static void attach_restarted(void *ctx, unsigned int i, uint64_t now)
{
	struct attach *a = ctx;

	if (a->host)
		attach_host_begin(a, i, now);
}

static uint64_t attach_next_due(const void *ctx)
{
	const struct attach *a = ctx;
	const int i = next_vcpu(a);

	return i < 0 ? SAMPLER_NEVER : attach_due(a, (unsigned int)i);
}

static void attach_take(void *ctx)
{
	struct attach *a = ctx;

	attach_try(a, (unsigned int)next_vcpu(a));
}

static bool attach_all_gone(const struct attach *a)
{
	for (unsigned int i = 0; i < a->ntracees; i++)
		if (!a->tracee[i].gone)
			return false;
	return true;
}

/*
 * Waits until time `when`, or until an event of a traced thread, and handles the stops of all
 * threads. They are handled also if `when` has passed, before the next thread is asked to stop.
 */
static void attach_wait_until(struct attach *a, uint64_t when)
{
	const uint64_t latest = clock_mono_ns() + ATTEND_NS;
	struct signalfd_siginfo info;

	attach_guard_beat(&a->guard);
	if (sampler_wait(&a->sampler, a->child_fd, when < latest ? when : latest)) {
		while (read(a->child_fd, &info, sizeof(info)) == sizeof(info))
			;
	} else if (clock_mono_ns() - a->attended_ns < ATTEND_NS) {
		return;
	}
	attach_attend(a);
}

static void attach_end_turn(void *ctx, uint64_t when)
{
	struct attach *a = ctx;

	if (atomic_load(&a->vm->stop))
		return;
	if (atomic_load(&a->sampler.go)) {
		if (attach_all_gone(a) && !attach_again(a)) {
			machine_end(a->vm, VM_END_GONE, NULL, NULL, NULL);
			return;
		}
		if (!a->gone_ns)
			attach_more_search(a);
		if (a->cfg.between)
			a->cfg.between(a->cfg.between_ctx);
	}
	attach_wait_until(a, when);
}

void attach_sample(struct attach *a)
{
	static const struct sampler_driver driver = {
		.begin = attach_begin_turn,
		.restarted = attach_restarted,
		.due = attach_next_due,
		.take = attach_take,
		.end = attach_end_turn,
	};

	a->sampler.driver = &driver;
	a->sampler.ctx = a;
	a->sampler.vm = a->vm;
	a->sampler.trigger = a->trigger;
	a->sampler.ntriggers = a->vm->nvcpus;
	sampler_run(&a->sampler);
}

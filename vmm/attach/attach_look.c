/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/attach_look.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/count.h"
#include "vmm/attach/attach_sample.h"
#include "vmm/capture/capture.h"
#include "vmm/capture/capture_task.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A machine whose VMM has not entered the guest for this time counts as paused. */
#define PAUSED_NS 20000000u

static int open_proc(const struct attach *a, unsigned int i, const char *name)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)a->cfg.pid, (int)a->tracee[i].tid,
		 name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void close_one(const struct attach_look *l)
{
	const int fds[] = { l->syscall, l->wchan, l->schedstat };

	for (unsigned int k = 0; k < sizeof(fds) / sizeof(fds[0]); k++)
		if (fds[k] >= 0)
			close(fds[k]);
}

void attach_look_open_one(struct attach *a, unsigned int i)
{
	if (i < a->nlooks)
		close_one(&a->look[i]);
	else
		a->nlooks = i + 1;
	a->look[i] = (struct attach_look){
		.syscall = open_proc(a, i, "syscall"),
		.wchan = open_proc(a, i, "wchan"),
		.schedstat = open_proc(a, i, "schedstat"),
	};
}

void attach_look_open(struct attach *a)
{
	for (unsigned int i = 0; i < a->ntracees; i++)
		attach_look_open_one(a, i);
}

void attach_look_close(struct attach *a)
{
	for (unsigned int i = 0; i < a->nlooks; i++)
		close_one(&a->look[i]);
	a->nlooks = 0;
}

/* Returns the current text of a file, in text[0, size); "" if it cannot be read. */
static const char *read_proc(int fd, char *text, size_t size)
{
	ssize_t n = fd < 0 ? -1 : pread(fd, text, size - 1, 0);

	text[n > 0 ? n : 0] = 0;
	return text;
}

static bool starts(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

bool attach_look_times(const struct attach *a, unsigned int i, struct attach_look_times *out)
{
	struct attach_look_times t;
	char text[96];

	if (sscanf(read_proc(a->look[i].schedstat, text, sizeof(text)),
		   "%" SCNu64 " %" SCNu64 " %" SCNu64, &t.ran, &t.delay, &t.runs) != 3)
		return false;
	*out = t;
	return true;
}

uint64_t attach_look_own_delay(void)
{
	cleanup_close int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	uint64_t delay = 0;
	char text[96];

	(void)sscanf(read_proc(fd, text, sizeof(text)), "%*u %" SCNu64, &delay);
	return delay;
}

/* Returns how often the thread got a processor, or UINT64_MAX if that is not known. */
static uint64_t runs_of(const struct attach *a, unsigned int i)
{
	struct attach_look_times t = { .runs = UINT64_MAX };

	(void)attach_look_times(a, i, &t);
	return t.runs;
}

enum attach_seen attach_look_at(const struct attach *a, unsigned int i)
{
	const struct attach_look *l = &a->look[i];
	struct proc_syscall call;
	char wchan[64];

	if (!proc_syscall_of(l->syscall, &call) || call.runs)
		return ATTACH_SEEN_RUNNING;
	read_proc(l->wchan, wchan, sizeof(wchan));
	if (starts(wchan, "ptrace_"))
		return ATTACH_SEEN_STOPPED;
	if (!process_is_kvm_run(&call))
		return ATTACH_SEEN_AWAY;
	/*
	 * wchan is empty in a kernel without symbols, and for a thread that has just been woken up.
	 */
	if (!wchan[0] || !strcmp(wchan, "0"))
		return ATTACH_SEEN_RUNNING;
	return starts(wchan, "kvm_vcpu_block") || starts(wchan, "kvm_vcpu_halt")
		       ? ATTACH_SEEN_HALTED
		       : ATTACH_SEEN_WAITING;
}

/* Copies the registers in the vCPU's page, with the RFLAGS that kvmprof's sentinel has replaced. */
static bool copy_page(const struct attach *a, unsigned int i, struct attach_regs *out)
{
	const struct kvm_run *page = a->page[i];

	out->regs = page->s.regs.regs;
	out->sregs = page->s.regs.sregs;
	out->flags = page->flags;
	if (!out->regs.rflags)
		out->regs.rflags = a->hidden[i];
	return out->regs.rflags != 0;
}

bool attach_look_regs(const struct attach *a, unsigned int i, struct attach_regs *out)
{
	const uint64_t runs = runs_of(a, i);

	return copy_page(a, i, out) && attach_look_at(a, i) == ATTACH_SEEN_AWAY &&
	       runs == runs_of(a, i);
}

bool attach_look_is_paused(struct attach *a, unsigned int i, const struct attach_regs *regs,
			   uint64_t now)
{
	struct attach_look *l = &a->look[i];

	if (!l->away_ns || memcmp(&l->away.regs, &regs->regs, sizeof(regs->regs)) != 0) {
		l->away_ns = now;
		l->away = *regs;
	}
	return now - l->away_ns > PAUSED_NS;
}

struct capture_view attach_look_view(const struct attach *a, const struct attach_regs *r)
{
	struct capture_view w = capture_view_of(&r->regs, &r->sregs, &a->capture_mem);

	w.flags = r->flags;
	w.has_flags = true;
	return w;
}

static void look_take(struct attach *a, unsigned int i, const struct attach_regs *r)
{
	struct vcpu *v = &a->vm->vcpu[i];
	const struct capture_view view = attach_look_view(a, r);
	struct capture_cause cause;

	attach_begin_sample(a, i, &cause);
	a->facts.without_stop++;
	if (capture_sample_of(v, &view, &cause))
		attach_note_first(a, i, cause.now);
	attach_end_reads(a);
}

/* Advances the deadline without a sample. Returns the number of periods that have passed. */
static uint32_t look_pass(struct attach *a, unsigned int i)
{
	return 1 + trigger_advance(&a->trigger[i], clock_mono_ns());
}

/*
 * Reads the return address on top of the stack, and which task Linux runs. Returns false if the
 * stack cannot be read.
 */
static bool read_halt(const struct attach *a, unsigned int i, const struct capture_view *view,
		      struct attach_halt *out)
{
	const struct vcpu *v = &a->vm->vcpu[i];
	const struct capture_task_plan *plan = capture_plan_of_task(a->vm);
	const uint64_t at =
		!plan->known ? 0 : capture_current_address(v, plan, view->sregs->gs.base);

	*out = (struct attach_halt){ 0 };
	if (at)
		(void)capture_read(view, at, &out->task, sizeof(out->task));
	return capture_read(view, view->regs->rsp, &out->caller, sizeof(out->caller)) ==
	       sizeof(out->caller);
}

/*
 * Returns whether a vCPU that has run since its registers were read is halted at the same place again, as an idle loop is. Another
 * place has another caller, and a task that waits for a lock of a paravirtual kernel (kvm_wait() in Linux) is another one than the idle task.
 */
static bool is_same_halt(struct attach *a, unsigned int i)
{
	const struct attach_look *l = &a->look[i];
	const struct capture_view view = attach_look_view(a, &l->halted);
	struct attach_halt now;

	return capture_is_behind_hlt(&view) && read_halt(a, i, &view, &now) && l->halt.caller &&
	       now.caller == l->halt.caller && now.task == l->halt.task;
}

const struct attach_regs *attach_look_halted(struct attach *a, unsigned int i)
{
	struct attach_look *l = &a->look[i];
	uint64_t runs;

	if (!l->kept)
		return NULL;
	attach_begin_reads(a, i);
	runs = runs_of(a, i);
	/* The thread has fallen asleep again after the stop. */
	if (l->adopts && l->unstarted)
		l->runs = runs;
	l->adopts = false;
	l->kept = (runs == l->runs && runs != UINT64_MAX) || (!l->unstarted && is_same_halt(a, i));
	l->runs = runs;
	return l->kept ? &l->halted : NULL;
}

void attach_look_skip(struct attach *a, unsigned int i, enum attach_skip why, uint32_t periods)
{
	const uint64_t ns = periods * a->trigger[i].period_ns;
	struct attach_facts *f = &a->facts;

	switch (why) {
	case ATTACH_SKIP_PAUSED:
		f->paused += periods;
		f->paused_ns += ns;
		break;
	case ATTACH_SKIP_AWAY:
		f->away += periods;
		f->away_ns += ns;
		break;
	case ATTACH_SKIP_UNSTARTED:
		count_add(&a->vm->vcpu[i].stats.offline, periods);
		f->unstarted_ns += ns;
		break;
	}
}

static bool sample_halted(struct attach *a, unsigned int i)
{
	const struct attach_regs *halted = attach_look_halted(a, i);

	if (!halted)
		return false;
	if (a->look[i].unstarted)
		attach_look_skip(a, i, ATTACH_SKIP_UNSTARTED, look_pass(a, i));
	else
		look_take(a, i, halted);
	return true;
}

static bool sample_away(struct attach *a, unsigned int i)
{
	struct attach_regs now;

	/*
	 * The thread runs again, or has not been in KVM_RUN since kvmprof attached: check a period
	 * later.
	 */
	if (!attach_look_regs(a, i, &now)) {
		attach_postpone_look(a, i);
	} else if (a->page[i]->exit_reason == KVM_EXIT_HLT) {
		attach_begin_reads(a, i);
		look_take(a, i, &now);
	} else if (attach_look_is_paused(a, i, &now, clock_mono_ns())) {
		attach_look_skip(a, i, ATTACH_SKIP_PAUSED, look_pass(a, i));
	} else {
		attach_look_skip(a, i, ATTACH_SKIP_AWAY, look_pass(a, i));
	}
	return true;
}

void attach_look_note(struct attach *a, unsigned int i, enum attach_seen seen)
{
	if (seen == ATTACH_SEEN_HALTED || seen == ATTACH_SEEN_WAITING)
		a->look[i].away_ns = 0;
}

bool attach_look_sample(struct attach *a, unsigned int i, enum attach_seen seen)
{
	attach_look_note(a, i, seen);
	switch (seen) {
	case ATTACH_SEEN_HALTED:
		return sample_halted(a, i);
	case ATTACH_SEEN_AWAY:
		return sample_away(a, i);
	case ATTACH_SEEN_WAITING:
		/*
		 * The sample is taken when the thread runs again, with the weight of the time until
		 * then.
		 */
		attach_postpone_look(a, i);
		return true;
	default:
		return false;
	}
}

bool attach_look_stopped_away(struct attach *a, unsigned int i)
{
	struct attach_regs now;

	return copy_page(a, i, &now) && a->page[i]->exit_reason != KVM_EXIT_HLT &&
	       attach_look_is_paused(a, i, &now, clock_mono_ns());
}

bool attach_look_stopped(struct attach *a, unsigned int i, enum attach_seen seen)
{
	const struct capture_view view = capture_view_of_run(a->page[i], &a->capture_mem);
	struct attach_look *l = &a->look[i];

	l->away_ns = 0;
	if (seen != ATTACH_SEEN_HALTED || !copy_page(a, i, &l->halted))
		return false;
	l->kept = l->adopts = true;
	(void)read_halt(a, i, &view, &l->halt);
	l->unstarted = !capture_is_behind_hlt(&view) &&
		       !process_thread_guest_time(&a->process, a->tracee[i].tid);
	return l->unstarted;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/attach.h"

#include "base/clock.h"
#include "base/thread.h"
#include "vmm/attach/peek_capture.h"
#include "vmm/attach/process.h"
#include "vmm/attach/regs_page.h"
#include "vmm/attach/slots.h"
#include "vmm/attach/tracer.h"
#include "vmm/gmem_remote.h"
#include "vmm/machine.h"

#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Looks at a thread that was asked to stop: some 20 us, in which one that runs a guest does. */
#define LOOKS 100u
/* How long a thread may take to stop while we look for vCPUs, and how often a thread is looked at that is busy elsewhere. */
#define FIND_HOLD_NS 50000000u
#define FIND_TRIES 100u
#define FIND_NAP_NS 5000000
/* How often registers are asked of all vCPUs until their memory is found. */
#define PROVE_TRIES 400u
/* So often each vCPU while none is in 64-bit mode: the caller knows what to say then. */
#define MODE_TRIES 10u
/* A thread without a processor is looked at so often for so long, and then asked to stop. */
#define AGAIN_NS 500000u
#define PATIENCE_NS 50000000u
/* A sampler without deadlines looks at control so often. */
#define IDLE_POLL_NS 100000000u

struct attach {
	struct backend base;
	struct vm *vm;
	struct attach_config cfg;
	struct process process;
	struct tracee tracee[ATTACH_MAX_VCPUS];
	unsigned int ntracees;
	struct gmem_remote capture, consumer; /* one for each thread that reads */
	struct gmem_remote_expected expected[ATTACH_MAX_VCPUS];
	struct gmem consumer_mem;
	struct slots_proof proof;
	pthread_t thread;
	bool started;
	int wake_fd, child_fd;
	sem_t ready, go;
	struct err err; /* of the beginning; valid after `ready` */
	struct attach_facts facts;
	struct trigger trigger[ATTACH_MAX_VCPUS];
	bool armed;			   /* when control was last looked at */
	uint64_t hidden[ATTACH_MAX_VCPUS]; /* by the sentinels */
	bool asks[ATTACH_MAX_VCPUS];	   /* the registers are stored because we asked */
	struct peek_capture peek;
	uint64_t again[ATTACH_MAX_VCPUS]; /* not before: its thread waits for a processor */
};

static void mark(struct attach *a, unsigned int i)
{
	if (a->asks[i])
		a->hidden[i] = regs_page_mark(a->vm->vcpu[i].run);
}

static void unmark(struct attach *a, unsigned int i)
{
	if (a->asks[i])
		regs_page_unmark(a->vm->vcpu[i].run, a->hidden[i]);
}

/* -- the beginning, on the tracer's thread -------------------------------------------- */

static void nap(long ns)
{
	const struct timespec ts = { .tv_nsec = ns };

	nanosleep(&ts, NULL);
}

static struct process_vcpu *vcpu_of_fd(struct process *p, int fd)
{
	for (unsigned int i = 0; i < p->nvcpus; i++)
		if (p->vcpu[i].fd == fd)
			return &p->vcpu[i];
	return NULL;
}

/* Which vCPU does this thread run? -1: none, as far as is seen. */
static int vcpu_of_thread(struct attach *a, struct tracee *t)
{
	struct process_vcpu *v;
	int fd;

	if (tracer_hold(t, FIND_HOLD_NS) || !tracer_is_in_run(t, &fd))
		return -1;
	v = vcpu_of_fd(&a->process, fd);
	return v ? (int)(v - a->process.vcpu) : -1;
}

/* vCPUs that are there but are not run (not plugged in, or of a VM that is only kept) don't count. */
static int keep_found(struct attach *a, struct err *e)
{
	struct process *p = &a->process;
	unsigned int n = 0;

	for (unsigned int i = 0; i < p->nvcpus; i++) {
		struct tracee t = a->tracee[i];

		if (!t.tid) {
			a->facts.not_running++;
			continue;
		}
		a->tracee[i].tid = 0;
		a->tracee[n] = t;
		p->vcpu[n] = p->vcpu[i];
		a->ntracees = n + 1;
		if (n && p->vcpu[n].id == p->vcpu[n - 1].id)
			return err_set(e, ENOTSUP,
				       "process %d (%s) runs several virtual machines: that is not "
				       "supported",
				       (int)p->pid, p->name);
		n++;
	}
	p->nvcpus = a->vm->nvcpus = n;
	return 0;
}

/* Threads in KVM_RUN are ours to hold; the others are given back at once. */
static int find_threads(struct attach *a, struct err *e)
{
	const struct process *p = &a->process;
	unsigned int found = 0;

	for (unsigned int try = 0; try < FIND_TRIES && found < p->nvcpus; try++) {
		for (unsigned int i = 0; i < p->nthreads && found < p->nvcpus; i++) {
			struct tracee t;
			struct err ignored = { 0 };
			int vcpu;

			if (!p->thread[i] || tracer_seize(&t, p->thread[i], try ? &ignored : e))
				continue;
			vcpu = vcpu_of_thread(a, &t);
			if (vcpu >= 0 && !a->tracee[vcpu].tid) {
				tracer_release(&t, true);
				a->tracee[vcpu] = t;
				a->process.thread[i] = 0;
				found++;
			} else {
				tracer_detach(&t);
			}
		}
		if (found < p->nvcpus)
			nap(FIND_NAP_NS);
	}
	if (!found && e->code)
		return -e->code;
	err_clear(e);
	if (!found)
		return err_set(e, EBUSY,
			       "process %d (%s): none of its %u vCPUs is running: is the machine "
			       "paused?",
			       (int)p->pid, p->name, p->nvcpus);
	return keep_found(a, e);
}

static int map_pages(struct attach *a, struct err *e)
{
	int ret = 0;

	for (unsigned int i = 0; !ret && i < a->process.nvcpus; i++) {
		struct vcpu *v = &a->vm->vcpu[i];

		ret = regs_page_map(&v->run, a->cfg.pid, a->process.vcpu[i].fd, e);
		if (!ret)
			a->asks[i] = regs_page_begin(v->run);
	}
	return ret;
}

static void take_witness(const struct vcpu *v, struct slots_witness *w)
{
	const struct kvm_sregs *s = &v->run->s.regs.sregs;

	capture_regs(v->run, &w->regs);
	w->idt_base = s->idt.base;
	w->idt_limit = s->idt.limit;
	w->gdt_base = s->gdt.base;
}

/* Each vCPU in turn is asked until one's registers prove where the memory is. */
static int find_memory(struct attach *a, struct err *e)
{
	struct vm *vm = a->vm;
	int ret = -EAGAIN;

	vm->mem.remote = &a->capture;
	for (unsigned int try = 0; try < PROVE_TRIES; try++) {
		unsigned int i = try % vm->nvcpus;
		struct slots_witness w;

		err_clear(e);
		ret = err_set(e, EAGAIN, "process %d (%s): its vCPUs give no registers",
			      (int)a->cfg.pid, a->process.name);
		if (!tracer_hold(&a->tracee[i], FIND_HOLD_NS)) {
			if (regs_page_is_fresh(vm->vcpu[i].run)) {
				err_clear(e);
				take_witness(&vm->vcpu[i], &w);
				ret = slots_find(&vm->mem, &a->process, &w, &a->proof, e);
			}
			mark(a, i);
			tracer_release(&a->tracee[i], true);
		}
		if (!ret || (ret == -EAGAIN && try > MODE_TRIES * vm->nvcpus))
			break;
		nap(FIND_NAP_NS);
	}
	if (ret)
		return ret;
	a->consumer_mem = vm->mem;
	a->consumer_mem.remote = &a->consumer;
	return 0;
}

/* -- sampling -------------------------------------------------------------------------- */

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
		unmark(a, i);
	} else if (regs_page_is_fresh(v->run)) {
		peek_capture_compare(&a->peek, v);
	}
	if (regs_page_is_fresh(v->run))
		capture_sample(v, &cause);
	else
		ring_drop(&v->ring);
	mark(a, i);
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

static void sample_loop(struct attach *a)
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

static void let_go(struct attach *a)
{
	for (unsigned int i = 0; i < a->ntracees; i++) {
		struct vcpu *v = &a->vm->vcpu[i];

		a->facts.signals += a->tracee[i].passed_on;
		/* The page first: nobody asks for registers any more when the thread runs on. */
		if (a->asks[i])
			regs_page_end(v->run);
		regs_page_unmap(v->run);
		v->run = NULL;
		tracer_detach(&a->tracee[i]);
	}
	a->ntracees = 0;
}

/* Not to have it is an error only where it was demanded. */
static int open_peek(struct attach *a, struct err *e)
{
	struct err why = { 0 };
	int ret;

	if (a->cfg.technique == ATTACH_PTRACE)
		return 0;
	ret = peek_capture_open(&a->peek, a->vm, &why);
	for (unsigned int i = 0; !ret && i < a->ntracees; i++)
		ret = peek_aim(&a->peek.eye[i], a->cfg.pid, a->tracee[i].tid,
			       (unsigned int)a->process.vcpu[i].fd, a->process.vcpu[i].id, &why);
	if (!ret)
		return 0;
	peek_capture_close(&a->peek);
	snprintf(a->facts.why_not, sizeof(a->facts.why_not), "%s", why.text);
	return a->cfg.technique == ATTACH_BPF ? err_set(e, -ret, "%s", why.text) : 0;
}

static void close_peek(struct attach *a)
{
	const struct peek *p = &a->peek.peek;
	struct attach_facts *f = &a->facts;

	f->bpf = peek_is_usable(p);
	if (p->differs.code)
		snprintf(f->why_not, sizeof(f->why_not), "%s", p->differs.text);
	memcpy(f->peeks, p->count, sizeof(f->peeks));
	f->compared = p->compared;
	peek_capture_close(&a->peek);
}

static void *tracer_main(void *arg)
{
	struct attach *a = arg;
	int ret;

	ret = find_threads(a, &a->err);
	ret = ret ? ret : map_pages(a, &a->err);
	ret = ret ? ret : find_memory(a, &a->err);
	ret = ret ? ret : open_peek(a, &a->err);
	sem_post(&a->ready);
	if (!ret) {
		while (sem_wait(&a->go) < 0)
			;
		sample_loop(a);
	}
	a->facts.reads = a->capture.calls;
	close_peek(a);
	let_go(a);
	return NULL;
}

/* -- the machine ----------------------------------------------------------------------- */

static int open_descriptors(struct attach *a, struct err *e)
{
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	/* A signal that nobody blocks and nobody handles is not even queued. */
	pthread_sigmask(SIG_BLOCK, &child, NULL);
	a->child_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	a->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return a->child_fd < 0 || a->wake_fd < 0
		       ? err_set(e, errno, "cannot open a descriptor: %s", strerror(errno))
		       : 0;
}

static int start_tracer(struct attach *a, struct err *e)
{
	int ret;

	ret = thread_start(&a->thread, tracer_main, a);
	if (ret)
		return err_set(e, ret, "cannot start a thread: %s", strerror(ret));
	a->started = true;
	while (sem_wait(&a->ready) < 0)
		;
	return a->err.code ? err_set(e, a->err.code, "%s", a->err.text) : 0;
}

static struct attach *self(const struct backend *b)
{
	return (struct attach *)(uintptr_t)b;
}

static void op_start(struct backend *b)
{
	sem_post(&self(b)->go);
}

static void op_wake(struct backend *b)
{
	uint64_t one = 1;

	(void)!write(self(b)->wake_fd, &one, sizeof(one));
}

static void op_join(struct backend *b)
{
	struct attach *a = self(b);

	if (a->started)
		pthread_join(a->thread, NULL);
	a->started = false;
}

static void op_destroy(struct backend *b)
{
	struct attach *a = self(b);

	/* It was never told to begin: the loop ends before its first sample. */
	if (a->started) {
		atomic_store(&a->vm->stop, true);
		sem_post(&a->go);
		op_join(b);
	}
	if (a->wake_fd >= 0)
		close(a->wake_fd);
	if (a->child_fd >= 0)
		close(a->child_fd);
	sem_destroy(&a->ready);
	sem_destroy(&a->go);
	free(a);
}

static const struct gmem *op_memory(const struct backend *b)
{
	return &self(b)->consumer_mem;
}

static void op_facts(const struct backend *b, struct attach_facts *out)
{
	const struct attach *a = self(b);

	*out = a->facts;
	out->pid = a->cfg.pid;
	memcpy(out->name, a->process.name, sizeof(out->name));
	out->memory = gmem_size(&a->consumer_mem);
	out->regions = a->consumer_mem.n;
	out->proofs = 0u + a->proof.text + a->proof.stack + a->proof.idt + a->proof.handlers +
		      a->proof.gdt;
	out->partial = a->proof.partial;
}

static const struct backend_ops attach_ops = {
	.start = op_start,
	.wake = op_wake,
	.join = op_join,
	.destroy = op_destroy,
	.memory = op_memory,
	.facts = op_facts,
};

int vm_attach(struct vm **out, const struct attach_config *cfg, struct err *e)
{
	struct attach *a = calloc(1, sizeof(*a));
	struct vm *vm;
	int ret;

	if (!a)
		return err_set(e, ENOMEM, "out of memory");
	a->base.ops = &attach_ops;
	a->cfg = *cfg;
	a->wake_fd = a->child_fd = -1;
	sem_init(&a->ready, 0, 0);
	sem_init(&a->go, 0, 0);
	gmem_remote_init(&a->capture, cfg->pid);
	gmem_remote_init(&a->consumer, cfg->pid);
	ret = process_look(&a->process, cfg->pid, e);
	vm = ret ? NULL : vm_new_foreign(&a->base, cfg, a->process.nvcpus, e);
	if (!vm) {
		op_destroy(&a->base);
		return -e->code;
	}
	a->vm = vm;
	ret = open_descriptors(a, e);
	ret = ret ? ret : start_tracer(a, e);
	if (ret) {
		op_join(&a->base);
		vm_destroy(vm);
		return ret;
	}
	*out = vm;
	return 0;
}

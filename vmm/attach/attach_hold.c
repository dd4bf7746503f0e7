/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/attach_state.h"

#include "base/clock.h"
#include "vmm/attach/patience.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

/* While vCPUs are looked for: how long a thread may take to stop before others are seen to again. */
#define FIND_HOLD_NS 50000000u
#define FIND_NAP_NS 5000000
#define FIND_NS 1000000000u
/* After so long threads are stopped, too, of which it is not seen whether they run guests. */
#define FIND_UNSURE_NS 100000000u
/* So long without another one. */
#define FIND_REST_NS 400000000u
/* How long registers are asked of all vCPUs until their memory is found. */
#define PROVE_NS 2000000000u
/* So often each vCPU while none is in 64-bit mode: the caller knows what to say then. */
#define MODE_LOOKS 10u
/* A vCPU that gave no registers did not get to run: naps become longer, by powers of two. */
#define NAP_SHIFTS 3u

/* All of it, whatever signals come and wherever the clock jumps. */
static void attach_nap(uint64_t ns)
{
	struct timespec ts = { 0, (long)ns };

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &ts) == EINTR)
		;
}

static struct process_vcpu *vcpu_of_fd(struct process *p, int fd)
{
	for (unsigned int i = 0; i < p->nvcpus; i++)
		if (p->vcpu[i].fd == fd)
			return &p->vcpu[i];
	return NULL;
}

/* Those that are found already wait for us with every signal. */
static void attend_found(struct attach *a)
{
	for (unsigned int i = 0; i < a->process.nvcpus; i++)
		if (a->tracee[i].tid && tracer_has_stopped(&a->tracee[i]))
			tracer_release(&a->tracee[i]);
}

/* Which vCPU does this thread run? -1: none, as far as is seen. */
static int vcpu_of_thread(struct attach *a, struct tracee *t, struct patience *left)
{
	struct process_vcpu *v;
	int fd, ret;

	/* One that gets no processor stops when it has one. */
	while ((ret = tracer_hold(t, FIND_HOLD_NS)) == -EAGAIN &&
	       patience_is_left(left, clock_mono_ns(), FIND_NS))
		attend_found(a);
	if (ret || tracer_place_of(t, &fd) == TRACER_ELSEWHERE)
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
		a->thread_start[n] = process_thread_start(p, t.tid);
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

/*
 * A stop breaks off what a thread waits in, and not every system call begins again: epoll_wait and
 * others return EINTR (signal(7)). So threads that wait in another call than KVM_RUN are left alone.
 */
static bool may_be_vcpu(const struct process *p, pid_t tid, bool unsure)
{
	enum process_activity activity = process_activity(p, tid);

	return activity == PROCESS_GUEST || (activity == PROCESS_RUNS && unsure);
}

/* One look at all threads that are not known yet. Those in KVM_RUN are ours to hold from now on. */
static unsigned int find_more(struct attach *a, struct patience *left, unsigned int found,
			      struct err *e)
{
	struct process *p = &a->process;

	for (unsigned int i = 0; i < p->nthreads && found < p->nvcpus; i++) {
		struct tracee t;
		struct err why = { 0 };
		int vcpu;

		if (!p->thread[i] ||
		    !may_be_vcpu(p, p->thread[i], left->spent_ns >= FIND_UNSURE_NS))
			continue;
		if (tracer_seize(&t, p->thread[i], &why)) {
			if (why.code != ESRCH)
				*e = why;
			continue;
		}
		vcpu = vcpu_of_thread(a, &t, left);
		if (vcpu >= 0 && !a->tracee[vcpu].tid) {
			tracer_release(&t);
			a->tracee[vcpu] = t;
			p->thread[i] = 0;
			found++;
		} else {
			tracer_detach(&t);
		}
	}
	return found;
}

static int find_threads(struct attach *a, struct err *e)
{
	const struct process *p = &a->process;
	struct patience left = { 0 };
	unsigned int found = 0;
	uint64_t limit = FIND_NS;

	while (found < p->nvcpus && patience_is_left(&left, clock_mono_ns(), limit)) {
		unsigned int before = found;

		err_clear(e);
		found = find_more(a, &left, found, e);
		/* With some found, the others may never run: they are given less time. */
		if (found > before)
			limit = left.spent_ns + FIND_REST_NS;
		if (found < p->nvcpus)
			attach_nap(FIND_NAP_NS);
		attend_found(a);
	}
	if (!found && e->code)
		return -e->code;
	err_clear(e);
	/* One that another tracer stops again and again is never seen in KVM_RUN. */
	for (unsigned int i = 0; !found && i < p->nthreads; i++)
		if (p->thread[i] && tracer_check(p->thread[i], e))
			return -EBUSY;
	if (!found)
		return err_set(e, EBUSY,
			       "process %d (%s): none of its %u vCPUs is running: is the machine "
			       "paused?",
			       (int)p->pid, p->name, p->nvcpus);
	return keep_found(a, e);
}

int attach_begin_page(struct attach *a, unsigned int i, struct err *e)
{
	enum regs_page_owner owner = regs_page_begin(a->page[i]);

	a->asks[i] = owner == REGS_PAGE_OURS;
	a->hidden[i] = 0;
	if (owner == REGS_PAGE_PARTIAL)
		return err_set(
			e, ENOTSUP,
			"process %d (%s): it uses the page of registers that KVM shares with "
			"it (KVM_CAP_SYNC_REGS) itself, and not for all registers: asking "
			"for more could change what it sees",
			(int)a->cfg.pid, a->process.name);
	return 0;
}

static int map_pages(struct attach *a, struct err *e)
{
	int ret = 0;

	for (unsigned int i = 0; !ret && i < a->process.nvcpus; i++) {
		ret = regs_page_map(&a->page[i], a->cfg.pid, a->process.vcpu[i].fd, e);
		ret = ret ? ret : attach_begin_page(a, i, e);
	}
	return ret;
}

static void take_witness(const struct kvm_run *page, struct slots_witness *w)
{
	const struct kvm_sregs *s = &page->s.regs.sregs;

	capture_regs(&page->s.regs.regs, s, &w->regs);
	w->idt_base = s->idt.base;
	w->idt_limit = s->idt.limit;
	w->gdt_base = s->gdt.base;
}

/* As KVM has it now, where a program of ours can read that. */
static void read_slots(struct attach *a, struct gmem *told, bool *partial, struct err *why)
{
	err_clear(why);
	told->n = 0;
	if (a->slots.object)
		slots_read(told, partial, &a->slots, &a->process, why);
}

/* As KVM has it, where the registers agree; else where they prove it to be. */
static int find_by_witness(struct attach *a, const struct gmem *told, bool partial,
			   const struct slots_witness *w, struct err *why, struct err *e)
{
	if (told->n && !slots_prove(told, w, &a->proof, why)) {
		a->capture_mem = *told;
		a->proof.partial = partial;
		a->facts.memory_told = true;
		return 0;
	}
	return slots_find(&a->capture_mem, &a->process, w, &a->proof, e);
}

/* Each vCPU in turn is asked until one's registers prove where the memory is. */
static int find_memory(struct attach *a, struct err *e)
{
	struct gmem told = { .remote = &a->capture };
	struct vm *vm = a->vm;
	struct err why = { 0 };
	struct patience left = { 0 };
	unsigned int looks = 0, silent = 0, naps;
	bool partial = false;
	int ret = -EAGAIN;

	a->capture_mem.remote = &a->capture;
	for (unsigned int i = 0; patience_is_left(&left, clock_mono_ns(), PROVE_NS);
	     i = (i + 1) % vm->nvcpus) {
		struct slots_witness w;

		err_clear(e);
		ret = err_set(e, EAGAIN, "process %d (%s): its vCPUs give no registers",
			      (int)a->cfg.pid, a->process.name);
		read_slots(a, &told, &partial, &why);
		silent++;
		if (!tracer_hold(&a->tracee[i], FIND_HOLD_NS)) {
			if (regs_page_is_fresh(a->page[i])) {
				err_clear(e);
				take_witness(a->page[i], &w);
				ret = find_by_witness(a, &told, partial, &w, &why, e);
				looks++;
				silent = 0;
			}
			attach_mark(a, i);
			tracer_release(&a->tracee[i]);
		}
		if (!ret || (ret == -EAGAIN && looks > MODE_LOOKS * vm->nvcpus))
			break;
		naps = silent / vm->nvcpus;
		attach_nap((uint64_t)FIND_NAP_NS << (naps < NAP_SHIFTS ? naps : NAP_SHIFTS));
	}
	if (ret)
		return ret;
	if (why.code)
		snprintf(a->facts.memory_why_not, sizeof(a->facts.memory_why_not), "%s", why.text);
	a->consumer_mem = a->capture_mem;
	a->consumer_mem.remote = &a->consumer;
	return 0;
}

int attach_hold(struct attach *a, struct err *e)
{
	int ret = find_threads(a, e);

	ret = ret ? ret : map_pages(a, e);
	return ret ? ret : find_memory(a, e);
}

void attach_let_go(struct attach *a)
{
	for (unsigned int i = 0; i < a->ntracees; i++) {
		a->facts.signals += a->tracee[i].passed_on;
		/* The page first: the thread must not run with our request for registers in it. */
		if (a->asks[i])
			regs_page_end(a->page[i]);
		regs_page_unmap(a->page[i]);
		a->page[i] = NULL;
		tracer_detach(&a->tracee[i]);
	}
	a->ntracees = 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/attach_state.h"

#include <errno.h>
#include <time.h>

/* How long a thread may take to stop while we look for vCPUs, and how often a thread is looked at that is busy elsewhere. */
#define FIND_HOLD_NS 50000000u
#define FIND_TRIES 100u
#define FIND_NAP_NS 5000000
/* How often registers are asked of all vCPUs until their memory is found. */
#define PROVE_TRIES 400u
/* So often each vCPU while none is in 64-bit mode: the caller knows what to say then. */
#define MODE_TRIES 10u

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
			attach_mark(a, i);
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

int attach_hold(struct attach *a, struct err *e)
{
	int ret = find_threads(a, e);

	ret = ret ? ret : map_pages(a, e);
	return ret ? ret : find_memory(a, e);
}

void attach_let_go(struct attach *a)
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

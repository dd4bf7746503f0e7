/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/attach_more.h"

#include "base/clock.h"
#include "base/proc.h"
#include "vmm/attach/attach_hold.h"
#include "vmm/attach/attach_host.h"
#include "vmm/attach/slots_kvm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Intervals at which the VMM's threads are counted, and at which descriptors are read in any case. */
#define COUNT_NS 50000000u
#define LOOK_NS UINT64_C(1000000000)
/* A new thread runs its vCPU within this time; descriptors are read at each count until then. */
#define NEW_NS UINT64_C(2000000000)
/* A thread that runs a guest stops within this time unless it has no processor. */
#define HOLD_NS 2000000u
/*
 * After this time threads are stopped, too, for which /proc does not show whether they run guests.
 */
#define UNSURE_NS 200000000u

/* -- BPF -------------------------------------------------------------------------------------- */

int attach_disable_peek(struct attach *a, const struct err *why, struct err *e)
{
	snprintf(a->facts.why_not, sizeof(a->facts.why_not), "%s", why->text);
	return a->cfg.technique == ATTACH_BPF ? err_set(e, why->code, "%s", why->text) : 0;
}

int attach_configure_peek(struct attach *a, struct err *e)
{
	struct pvm_peek_target target[ATTACH_MAX_VCPUS];
	const struct pvm_peek_aim at = {
		.pid = a->cfg.pid, .mem = &a->capture_mem, .target = target, .n = a->ntracees
	};
	struct err why = { 0 };

	if (!a->peek || a->host)
		return 0;
	for (unsigned int i = 0; i < a->ntracees; i++)
		target[i] = (struct pvm_peek_target){ .tid = a->tracee[i].tid,
						      .fd = (unsigned int)a->process.vcpu[i].fd,
						      .id = a->process.vcpu[i].id };
	if (!pvm_peek_ops()->aim(a->peek, &at, &why))
		return 0;
	pvm_peek_ops()->close(a->peek);
	a->peek = NULL;
	return attach_disable_peek(a, &why, e);
}

/* -- what is new -------------------------------------------------------------------------------- */

/* Returns a number that changes with the number of threads (proc(5): a directory for each). */
static uint64_t count_threads(const struct attach *a)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)a->cfg.pid);
	return stat(path, &st) < 0 ? 0 : (uint64_t)st.st_nlink;
}

static bool more_is_due(struct attach *a)
{
	struct attach_more *m = &a->more;
	const uint64_t now = clock_mono_ns();
	uint64_t threads;

	if (!clock_is_due(now, m->counted_ns, COUNT_NS))
		return false;
	m->counted_ns = now;
	threads = count_threads(a);
	if (threads != m->threads)
		m->until_ns = now + NEW_NS;
	m->threads = threads;
	if (now > m->until_ns && !clock_is_due(now, m->looked_ns, LOOK_NS))
		return false;
	m->looked_ns = now;
	return true;
}

static bool is_sampled(const struct attach *a, const struct process_vcpu *v)
{
	for (unsigned int i = 0; i < a->ntracees; i++)
		if (!a->tracee[i].gone && a->process.vcpu[i].id == v->id &&
		    a->process.vcpu[i].fd == v->fd)
			return true;
	return false;
}

static bool is_ours(const struct attach *a, pid_t tid)
{
	bool found = false;

	for (unsigned int i = 0; i < a->ntracees; i++)
		found |= !a->tracee[i].gone && a->tracee[i].tid == tid;
	for (unsigned int i = 0; i < a->nstrays; i++)
		found |= a->stray[i].tid == tid;
	return found;
}

/*
 * Keeps only the vCPUs of the machine that is sampled. Returns false if the process has several
 * machines and it is not known to which one a vCPU belongs.
 */
static bool keep_machine(const struct attach *a, struct process *p)
{
	const struct process_vcpu *first;
	struct err ignored = { 0 };

	if (!a->cfg.machine && !process_has_several(p))
		return true;
	if (!a->slots.object || slots_number_machines(p, &a->slots, &ignored) < 0)
		return false;
	first = process_vcpu_of(p, a->process.vcpu[0].fd);
	if (!first)
		return false;
	process_keep_machine(p, first->machine);
	return true;
}

/* -- a vCPU ------------------------------------------------------------------------------------- */

/* Returns the place of a vCPU with this number that has ended, or else the next one. */
static unsigned int place_of(const struct attach *a, unsigned int id)
{
	for (unsigned int i = 0; i < a->ntracees; i++)
		if (a->tracee[i].gone && a->process.vcpu[i].id == id)
			return i;
	return a->ntracees;
}

static void note_added(struct attach *a, const struct process_vcpu *v)
{
	size_t len = strlen(a->facts.added_ids);

	a->facts.added++;
	snprintf(a->facts.added_ids + len, sizeof(a->facts.added_ids) - len, "%s%u",
		 len ? ", " : "", v->id);
}

static void forget_place(struct attach *a, unsigned int i)
{
	a->facts.signals += a->tracee[i].passed_on;
	regs_page_unmap(a->page[i]);
	a->page[i] = NULL;
	a->asks[i] = false;
	a->again[i] = 0;
	a->too_soon[i] = 0;
}

/* Copies the descriptors that the search has found. The order of a->process.vcpu stays. */
static void take_descriptors(struct attach *a, const struct process *found)
{
	memcpy(a->process.fd, found->fd, found->nfds * sizeof(found->fd[0]));
	a->process.nfds = found->nfds;
}

/* Samples the vCPU from now on. *t may be held. */
static int add_vcpu(struct attach *a, const struct tracee *t, const struct process_vcpu *v,
		    struct err *e)
{
	const unsigned int i = place_of(a, v->id);
	struct kvm_run *page;
	int ret;

	if (i == a->vm->places)
		return err_set(e, E2BIG, "no room for another vCPU");
	ret = regs_page_map(&page, a->cfg.pid, v->fd, e);
	if (ret)
		return ret;
	if (i < a->ntracees)
		forget_place(a, i);
	a->page[i] = page;
	a->tracee[i] = *t;
	a->process.vcpu[i] = *v;
	a->thread_start[i] = process_thread_start(&a->process, t->tid);
	attach_look_open_one(a, i);
	ret = attach_begin_page(a, i, e);
	if (!ret && a->host)
		ret = attach_host_open_one(a, i, e);
	if (ret) {
		a->tracee[i].gone = true;
		return ret;
	}
	if (i == a->ntracees)
		a->process.nvcpus = a->ntracees = i + 1;
	if (a->ntracees > a->places)
		a->places = a->ntracees;
	a->sampler.ntriggers = a->places;
	sampler_add(&a->sampler, i);
	a->vm->nvcpus = a->places;
	attach_mark(a, i);
	note_added(a, v);
	return attach_configure_peek(a, e);
}

static bool seize_thread(struct attach *a, pid_t tid, struct tracee *t)
{
	struct err ignored = { 0 };

	return a->cfg.follows ? follow_hand_over(&a->follow, tid, HOLD_NS, t)
			      : tracer_seize(t, tid, &ignored) == 0;
}

/* Detaches from a thread that runs no vCPU of this machine, or follows it again. */
static void leave_thread(struct attach *a, struct tracee *t)
{
	struct attach_more *m = &a->more;

	m->others[m->nothers++ % ATTACH_MAX_STRAYS] = t->tid;
	if (a->cfg.follows)
		follow_readd(&a->follow, t);
	else
		(void)attach_release_thread(a, t);
}

/*
 * Returns whether the thread may run a vCPU, so that it may be stopped. Where the kernel does not account
 * the time of guests, one that runs is stopped once if no other thread is found.
 */
static bool may_be_vcpu(const struct attach *a, const struct process *p, pid_t tid)
{
	const struct attach_more *m = &a->more;
	enum process_activity activity = process_activity(p, tid);

	if (activity != PROCESS_RUNS || clock_mono_ns() - m->fresh_ns < UNSURE_NS)
		return activity == PROCESS_GUEST;
	for (unsigned int i = 0; i < ATTACH_MAX_STRAYS; i++)
		if (m->others[i] == tid)
			return false;
	return true;
}

/* Samples the vCPU that the thread runs, if it is a new one of this machine; *t may be held. fd: its descriptor, or -1. */
static void use_thread(struct attach *a, struct tracee *t, int fd)
{
	const struct process_vcpu *v = process_vcpu_of(a->more.process, fd);
	const pid_t tid = t->tid;
	struct err why = { 0 };

	if (!v || is_sampled(a, v) || add_vcpu(a, t, v, &why)) {
		leave_thread(a, t);
		return;
	}
	for (unsigned int i = 0; i < a->ntracees; i++)
		if (a->tracee[i].tid == tid && a->tracee[i].held)
			tracer_release(&a->tracee[i]);
}

static int descriptor_of(const struct tracee *t)
{
	int fd;

	return tracer_place_of(t, &fd) == TRACER_ELSEWHERE ? -1 : fd;
}

/*
 * Seizes a thread that may run a new vCPU, and samples that. A thread without a processor stops
 * when it gets one; attach_more_handle_stop() then continues.
 */
static void see_thread(struct attach *a, const struct process *p, pid_t tid)
{
	struct tracee t;
	int fd;

	if (is_ours(a, tid) || !may_be_vcpu(a, p, tid) || !seize_thread(a, tid, &t))
		return;
	fd = t.held ? descriptor_of(&t) : process_vcpu_fd(p, tid);
	if (fd < 0 && !t.held && tracer_hold(&t, HOLD_NS) == -EAGAIN)
		a->more.asked = t;
	else
		use_thread(a, &t, fd < 0 && t.held ? descriptor_of(&t) : fd);
}

void attach_more_handle_stop(struct attach *a)
{
	struct tracee *t = &a->more.asked, stopped;

	if (!t->tid)
		return;
	if (t->gone || tracer_has_stopped(t)) {
		stopped = *t;
		*t = (struct tracee){ 0 };
		if (!stopped.gone)
			use_thread(a, &stopped, descriptor_of(&stopped));
	}
}

void attach_more_suspend(struct attach *a)
{
	while (a->more.asked.tid && tracer_detach(&a->more.asked))
		;
	a->more.asked = (struct tracee){ 0 };
}

static void search(struct attach *a, struct process *p)
{
	struct err ignored = { 0 };
	unsigned int fresh = 0;

	if (process_look(p, a->cfg.pid, &ignored) || !keep_machine(a, p))
		return;
	for (unsigned int i = 0; i < p->nvcpus; i++)
		fresh += !is_sampled(a, &p->vcpu[i]);
	if (!fresh)
		a->more.fresh_ns = 0;
	else if (!a->more.fresh_ns)
		a->more.fresh_ns = clock_mono_ns();
	if (!fresh)
		return;
	take_descriptors(a, p);
	for (unsigned int i = 0; i < p->nthreads && !a->more.asked.tid; i++)
		see_thread(a, p, p->thread[i]);
}

void attach_more_search(struct attach *a)
{
	if (a->more.asked.tid || !more_is_due(a))
		return;
	if (!a->more.process)
		a->more.process = malloc(sizeof(*a->more.process));
	if (a->more.process)
		search(a, a->more.process);
}

void attach_more_close(struct attach *a)
{
	if (a->more.asked.tid)
		tracer_abandon(&a->more.asked);
	free(a->more.process);
	a->more.process = NULL;
}

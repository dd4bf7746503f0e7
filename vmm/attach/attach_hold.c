/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/attach_hold.h"

#include "base/clock.h"
#include "base/patience.h"
#include "vmm/attach/attach_again.h"
#include "vmm/attach/slots_kvm.h"
#include "vmm/capture/capture.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

/*
 * During the search for vCPUs: how long a thread may take to stop before the others are handled
 * again.
 */
#define FIND_HOLD_NS 50000000u
#define FIND_NAP_NS 5000000
#define FIND_NS 1000000000u
/*
 * After this time threads are stopped, too, for which /proc does not show whether they run guests.
 */
#define FIND_UNSURE_NS 100000000u
/* The search ends when no further vCPU was found for this time. */
#define FIND_REST_NS 400000000u
/* How often the process is examined again if none of its vCPUs runs, and another one does. */
#define FIND_TRIES 3u
/* Limit of the time in which registers are requested from all vCPUs until they prove the memory. */
#define PROVE_NS 2000000000u
/* Number of attempts for each vCPU while none is in 64-bit mode. */
#define MODE_LOOKS 10u
/* A vCPU whose page is not fresh did not get to run: the intervals then grow by powers of two. */
#define NAP_SHIFTS 3u

/* The search for vCPUs of a followed VMM ends after this time without another one. */
#define FOLLOW_REST_NS 50000000u
/* Interval at which guest memory is searched until registers agree. */
#define MEMORY_AGAIN_NS 10000000u

/* Sleeps the whole time despite EINTR, on a clock that cannot be set. */
static void attach_nap(uint64_t ns)
{
	struct timespec ts = { 0, (long)ns };

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &ts) == EINTR)
		;
}

/*
 * Handles the stops of threads that are seized already: each of their signals waits for this
 * thread.
 */
static void attend_found(struct attach *a)
{
	attach_guard_beat(&a->guard);
	for (unsigned int i = 0; i < a->process.nvcpus; i++)
		if (a->tracee[i].tid && tracer_has_stopped(&a->tracee[i]))
			tracer_release(&a->tracee[i]);
	attach_handle_strays(a);
}

static bool hold_is_over(const struct attach *a)
{
	return a->cfg.is_over && a->cfg.is_over(a->cfg.between_ctx);
}

/* Returns the index of the vCPU with this descriptor, or -1. */
static int number_of(struct attach *a, int fd)
{
	const struct process_vcpu *v = process_vcpu_of(&a->process, fd);

	return v ? (int)(v - a->process.vcpu) : -1;
}

/* Returns the index of the vCPU that this thread runs, or -1 if it was not seen to run one. */
static int vcpu_of_thread(struct attach *a, struct tracee *t, struct patience *left)
{
	int fd, ret;

	/* A thread that sleeps in KVM_RUN shows which vCPU it runs, without a stop. */
	fd = process_vcpu_fd(&a->process, t->tid);
	if (fd >= 0)
		return number_of(a, fd);
	/* A thread without a processor stops when it gets one. */
	while ((ret = tracer_hold(t, FIND_HOLD_NS)) == -EAGAIN && !hold_is_over(a) &&
	       patience_is_left(left, clock_mono_ns(), FIND_NS))
		attend_found(a);
	/*
	 * The thread has fallen asleep in KVM_RUN meanwhile and waits for a page, which a stop does
	 * not interrupt.
	 */
	if (ret == -EAGAIN)
		return number_of(a, process_vcpu_fd(&a->process, t->tid));
	if (ret || tracer_place_of(t, &fd) == TRACER_ELSEWHERE)
		return -1;
	return number_of(a, fd);
}

/*
 * Returns whether vCPU i is a copy: whether another descriptor with its number was found to run.
 * For kernels that do not report copies of a descriptor (kcmp(2)). kept: number of vCPUs at the
 * beginning that were found and are before i.
 */
static bool is_copy(const struct attach *a, unsigned int i, unsigned int kept)
{
	const struct process *p = &a->process;
	bool found = kept && p->vcpu[kept - 1].id == p->vcpu[i].id;

	for (unsigned int k = i + 1; k < p->nvcpus && p->vcpu[k].id == p->vcpu[i].id; k++)
		found |= a->tracee[k].tid != 0;
	return found;
}

/*
 * Keeps the vCPUs whose threads were found. vCPUs that do not run (not plugged in, or of a machine
 * that is only kept) do not count.
 */
static int keep_found(struct attach *a, struct err *e)
{
	struct process *p = &a->process;
	unsigned int n = 0;

	for (unsigned int i = 0; i < p->nvcpus; i++) {
		struct tracee t = a->tracee[i];

		if (!t.tid) {
			a->facts.not_running += !is_copy(a, i, n);
			continue;
		}
		a->tracee[i].tid = 0;
		a->tracee[n] = t;
		a->thread_start[n] = process_thread_start(p, t.tid);
		p->vcpu[n] = p->vcpu[i];
		a->ntracees = n + 1;
		if (n && p->vcpu[n].id == p->vcpu[n - 1].id)
			return err_set(e, ENOTSUP,
				       "process %d (%s) runs several virtual machines, which "
				       "cannot be told apart",
				       (int)p->pid, p->name);
		n++;
	}
	p->nvcpus = a->vm->nvcpus = n;
	return 0;
}

/*
 * Returns whether the thread may be stopped to see whether it runs a vCPU. A stop interrupts the
 * system call in which a thread waits, and not every call is restarted: epoll_wait and others
 * return EINTR (signal(7)). Threads that wait in a call other than KVM_RUN are therefore not
 * stopped.
 */
static bool may_be_vcpu(const struct process *p, pid_t tid, bool unsure)
{
	enum process_activity activity = process_activity(p, tid);

	return activity == PROCESS_GUEST || (activity == PROCESS_RUNS && unsure);
}

bool attach_release_thread(struct attach *a, struct tracee *t)
{
	unsigned int i = 0;

	if (!tracer_detach(t))
		return false;
	while (i < a->nstrays && a->stray[i].tid)
		i++;
	if (i == ATTACH_MAX_STRAYS)
		return false;
	a->stray[i] = *t;
	a->nstrays += i == a->nstrays;
	return true;
}

void attach_handle_strays(struct attach *a)
{
	for (unsigned int i = 0; i < a->nstrays; i++)
		if (a->stray[i].tid && tracer_has_stopped(&a->stray[i]))
			(void)tracer_detach(&a->stray[i]);
}

/* Checks all threads that are not known yet, once, and keeps those in KVM_RUN seized. */
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
			if (attach_release_thread(a, &t))
				p->thread[i] = 0;
		}
	}
	return found;
}

/* Finds the threads of the vCPUs. Returns 0 or -errno, or 1 if none of them runs. */
static int find_threads(struct attach *a, struct err *e)
{
	const struct process *p = &a->process;
	struct patience left = { 0 };
	unsigned int found = 0;
	uint64_t limit = FIND_NS;

	while (found < p->nvcpus && !hold_is_over(a) &&
	       patience_is_left(&left, clock_mono_ns(), limit)) {
		unsigned int before = found;

		err_clear(e);
		found = find_more(a, &left, found, e);
		/* With some found, the others may never run, so the limit becomes shorter. */
		if (found > before)
			limit = left.spent_ns + FIND_REST_NS;
		if (found < p->nvcpus)
			attach_nap(FIND_NAP_NS);
		attend_found(a);
	}
	if (!found && e->code)
		return -e->code;
	err_clear(e);
	/* A thread that another tracer stops again and again is never seen in KVM_RUN. */
	for (unsigned int i = 0; !found && i < p->nthreads; i++)
		if (p->thread[i] && tracer_check(p->thread[i], e))
			return -EBUSY;
	if (!found)
		return 1;
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
	for (unsigned int i = 0; i < a->process.nvcpus; i++) {
		int ret = regs_page_map(&a->page[i], a->cfg.pid, a->process.vcpu[i].fd, e);

		if (ret)
			return ret;
		ret = attach_begin_page(a, i, e);
		if (ret)
			return ret;
	}
	return 0;
}

static void take_witness(const struct kvm_run *page, struct slots_witness *w)
{
	const struct kvm_sregs *s = &page->s.regs.sregs;

	capture_regs(&page->s.regs.regs, s, &w->regs);
	w->idt_base = s->idt.base;
	w->idt_limit = s->idt.limit;
	w->gdt_base = s->gdt.base;
}

/* Reads the location of memory from KVM, if the BPF program is loaded; else leaves told->n at 0. */
static void read_slots(struct attach *a, struct gmem *told, bool *partial, struct err *why)
{
	err_clear(why);
	told->n = 0;
	if (a->slots.object)
		slots_read(told, partial, &a->slots, &a->process, why);
}

/*
 * Uses KVM's slots if the registers agree with them, else searches for the memory by the registers.
 */
static int find_by_witness(struct attach *a, const struct gmem *told, bool partial,
			   const struct slots_witness *w, struct err *why, struct err *e)
{
	if (told->n && !slots_prove(told, w, &a->proof, why)) {
		a->capture_mem = *told;
		a->proof.partial = partial;
		a->facts.memory_from_kvm = true;
		return 0;
	}
	return slots_find(&a->capture_mem, &a->process, w, &a->proof, e);
}

static int no_registers(const struct attach *a, struct err *e)
{
	err_clear(e);
	return err_set(e, EAGAIN, "process %d (%s): its vCPUs give no registers", (int)a->cfg.pid,
		       a->process.name);
}

/*
 * Keeps the registers of a halted vCPU for its samples, which then need no stop. The stops of the search may have woken its
 * thread, so that it was not seen asleep.
 */
static void adopt_halt(struct attach *a, unsigned int i, enum attach_seen seen)
{
	const struct capture_view view = capture_view_of_run(a->page[i], &a->capture_mem);

	(void)attach_look_stopped(a, i, capture_is_behind_hlt(&view) ? ATTACH_SEEN_HALTED : seen);
}

/* Requests registers from each vCPU in turn until they prove where the memory is. */
static int find_memory(struct attach *a, struct err *e)
{
	struct gmem told = { .remote = &a->capture };
	struct vm *vm = a->vm;
	struct err why = { 0 };
	struct patience left = { 0 };
	unsigned int looks = 0, silent = 0, naps;
	bool partial = false;
	int ret = no_registers(a, e);

	a->capture_mem.remote = &a->capture;
	for (unsigned int i = 0;
	     !hold_is_over(a) && patience_is_left(&left, clock_mono_ns(), PROVE_NS);
	     i = (i + 1) % vm->nvcpus) {
		struct slots_witness w;
		enum attach_seen seen;

		attach_guard_beat(&a->guard);
		ret = no_registers(a, e);
		read_slots(a, &told, &partial, &why);
		silent++;
		seen = attach_look_at(a, i);
		if (seen != ATTACH_SEEN_AWAY && seen != ATTACH_SEEN_WAITING &&
		    !tracer_hold(&a->tracee[i], FIND_HOLD_NS)) {
			if (regs_page_is_fresh(a->page[i])) {
				err_clear(e);
				take_witness(a->page[i], &w);
				ret = find_by_witness(a, &told, partial, &w, &why, e);
				looks++;
				silent = 0;
				if (!ret)
					adopt_halt(a, i, seen);
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

/* Keeps only the vCPUs of the machine that the user selected. */
static int choose_machine(struct attach *a, struct err *e)
{
	struct process *p = &a->process;
	const unsigned int wanted = a->cfg.machine;
	struct err why = { 0 };
	int n;

	if (wanted <= 1 && !process_has_several(p))
		return 0;
	if (!a->slots.object && !wanted && process_drop_own_helper(p))
		return 0;
	if (!a->slots.object)
		return err_set(e, ENOTSUP,
			       "process %d (%s) runs several virtual machines, and only BPF tells "
			       "whose a vCPU is: %s",
			       (int)p->pid, p->name,
			       *a->facts.memory_why_not ? a->facts.memory_why_not
							: "--technique ptrace does without");
	n = slots_number_machines(p, &a->slots, &why);
	if (n < 0)
		return err_set(e, ENOTSUP, "%s", why.text);
	if (wanted > (unsigned int)n)
		return err_set(e, ENOENT,
			       "process %d (%s) runs %d virtual machines: there is no number %u",
			       (int)p->pid, p->name, n, wanted);
	if (!wanted && n > 1)
		return err_set(e, ENOTUNIQ,
			       "process %d (%s) runs %d virtual machines: choose one, --vm 1 to "
			       "--vm %d, in the order in which they were made",
			       (int)p->pid, p->name, n, n);
	process_keep_machine(p, wanted ? wanted : 1);
	return 0;
}

/* -- a VMM that was followed ------------------------------------------------------------------- */

/* Waits for the first KVM_RUN of the other vCPUs, as long as more threads enter it. */
static void wait_for_others(struct attach *a)
{
	struct patience left = { 0 };
	unsigned int seen = follow_held_count(&a->follow);

	while (seen < a->process.nvcpus &&
	       patience_is_left(&left, clock_mono_ns(), FOLLOW_REST_NS)) {
		struct err ignored = { 0 };
		unsigned int now;

		attach_guard_beat(&a->guard);
		(void)follow_step(&a->follow, &ignored);
		now = follow_held_count(&a->follow);
		if (now > seen)
			left = (struct patience){ 0 };
		seen = now;
		attach_nap(FOLLOW_NAP_NS);
	}
	follow_settle(&a->follow);
}

/* Takes over the threads that are held at their first KVM_RUN. */
static int take_followed(struct attach *a, struct err *e)
{
	struct tracee t;

	wait_for_others(a);
	while (follow_hand_over_next(&a->follow, &t)) {
		const int vcpu = number_of(a, (int)t.regs.rdi);

		if (vcpu >= 0 && !a->tracee[vcpu].tid)
			a->tracee[vcpu] = t;
		else
			(void)attach_release_thread(a, &t);
	}
	return keep_found(a, e);
}

void attach_release_followed(struct attach *a)
{
	if (!a->cfg.follows)
		return;
	a->own_delay_at_start = attach_look_own_delay();
	for (unsigned int i = 0; i < a->ntracees; i++) {
		struct attach_look_times t = { .delay = 0 };

		(void)attach_look_times(a, i, &t);
		a->delay_at_start[i] = t.delay;
		tracer_release(&a->tracee[i]);
	}
}

void attach_publish_memory(struct attach *a)
{
	a->consumer_mem = a->capture_mem;
	a->consumer_mem.remote = &a->consumer;
	if (a->peek)
		pvm_peek_ops()->see_memory(a->peek, &a->capture_mem);
	if (a->cfg.memory_changed)
		a->cfg.memory_changed(a->cfg.between_ctx, &a->consumer_mem);
}

void attach_find_memory_again(struct attach *a, unsigned int i)
{
	const uint64_t now = clock_mono_ns();
	struct gmem told = { .remote = &a->capture };
	struct err why = { 0 }, e = { 0 };
	struct slots_witness w;
	bool partial = false;

	if (a->proven || now - a->looked_ns < MEMORY_AGAIN_NS)
		return;
	a->looked_ns = now;
	read_slots(a, &told, &partial, &why);
	take_witness(a->page[i], &w);
	a->proven = !find_by_witness(a, &told, partial, &w, &why, &e);
	if (!a->proven && told.n) {
		a->capture_mem = told;
		a->proof.partial = partial;
	}
	attach_publish_memory(a);
}

/*
 * Uses KVM's slots without a proof, because no guest has run yet whose registers could prove them.
 */
static void take_slots(struct attach *a)
{
	struct err why = { 0 };
	bool partial = false;

	a->proven = false;
	a->capture_mem.remote = &a->capture;
	read_slots(a, &a->capture_mem, &partial, &why);
	a->facts.memory_from_kvm = a->capture_mem.n != 0;
	a->proof.partial = partial;
	if (why.code)
		snprintf(a->facts.memory_why_not, sizeof(a->facts.memory_why_not), "%s", why.text);
	a->consumer_mem = a->capture_mem;
	a->consumer_mem.remote = &a->consumer;
}

static int hold_followed(struct attach *a, struct err *e)
{
	int ret = take_followed(a, e);

	if (ret)
		return ret;
	if (!a->ntracees)
		return err_set(e, EBUSY, "process %d (%s): its thread has left KVM_RUN",
			       (int)a->process.pid, a->process.name);
	attach_look_open(a);
	ret = map_pages(a, e);
	if (!ret)
		take_slots(a);
	return ret;
}

/*
 * Finds the threads of the vCPUs. If none of them runs, the machine is paused, or the VMM has made
 * another machine since the process was examined.
 */
static int find_running(struct attach *a, struct err *e)
{
	const struct process *p = &a->process;
	int ret = find_threads(a, e);

	for (unsigned int i = 0; ret > 0 && i < FIND_TRIES && attach_again_look(a); i++) {
		ret = choose_machine(a, e);
		ret = ret ? ret : find_threads(a, e);
	}
	if (ret <= 0)
		return ret;
	return err_set(e, EBUSY,
		       "process %d (%s): none of its %u vCPUs is running: is the machine "
		       "paused?",
		       (int)p->pid, p->name, p->nvcpus);
}

static int hold_any(struct attach *a, struct err *e)
{
	int ret;

	if (a->cfg.follows)
		return hold_followed(a, e);
	ret = find_running(a, e);
	if (ret)
		return ret;
	attach_look_open(a);
	return map_pages(a, e);
}

int attach_hold(struct attach *a, struct err *e)
{
	int ret = choose_machine(a, e);

	ret = ret ? ret : hold_any(a, e);
	a->places = a->ntracees;
	if (ret || a->cfg.follows)
		return ret;
	a->proven = true;
	return find_memory(a, e);
}

int attach_hold_next(struct attach *a, struct err *e)
{
	int ret = choose_machine(a, e);

	if (!ret && a->process.nvcpus > a->vm->places)
		a->process.nvcpus = a->vm->places;
	if (!ret && a->cfg.follows)
		follow_hold_again(&a->follow);
	ret = ret ? ret : hold_any(a, e);
	if (!ret && !a->cfg.follows)
		take_slots(a);
	return ret;
}

void attach_release(struct attach *a)
{
	for (unsigned int i = 0; i < a->ntracees; i++) {
		a->facts.signals += a->tracee[i].passed_on;
		/*
		 * The page comes first: the thread must not run with kvmprof's request for
		 * registers in it.
		 */
		if (a->asks[i])
			regs_page_end(a->page[i]);
		regs_page_unmap(a->page[i]);
		a->page[i] = NULL;
		tracer_abandon(&a->tracee[i]);
	}
	for (unsigned int i = 0; i < a->nstrays; i++)
		tracer_abandon(&a->stray[i]);
	attach_look_close(a);
	a->ntracees = a->nstrays = 0;
}

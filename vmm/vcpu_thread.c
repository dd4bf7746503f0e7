/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/vcpu_thread.h"

#include "base/clock.h"
#include "base/count.h"
#include "vmm/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Thread_local struct vcpu *current_vcpu;

struct vcpu *vcpu_current(void)
{
	return current_vcpu;
}

void vcpu_set_current(struct vcpu *v)
{
	current_vcpu = v;
}

void vcpu_kick(struct vcpu *v)
{
	int tid = atomic_load(&v->tid);

	/*
	 * The thread clears tid before it ends and is joined afterwards, so the id cannot belong to
	 * another thread.
	 */
	if (tid)
		syscall(SYS_tgkill, getpid(), tid, VCPU_KICK_SIGNAL);
}

/*
 * Reads the registers by ioctls. It does not use kvm_valid_regs: if this process does not set it, a
 * kvmprof that is attached to this one uses it (attach/regs_page.h), and may start and stop doing
 * so at any time.
 */
void vcpu_fetch_regs(struct vcpu *v)
{
	struct kvm_run *run = v->run;
	struct err e = { 0 };

	if (v->regs_kept || (ioctl(v->fd, KVM_GET_REGS, &run->s.regs.regs) == 0 &&
			     ioctl(v->fd, KVM_GET_SREGS, &run->s.regs.sregs) == 0))
		return;
	err_set(&e, errno, "vCPU %u: cannot read its registers: %s", v->index, strerror(errno));
	machine_end(v->vm, VM_END_ERROR, v, NULL, &e);
}

/*
 * Marks the beginning of a change, so that readers get a consistent copy: the count is odd during
 * the change (vm_account()).
 */
static void change_begins(struct vcpu *v)
{
	atomic_store_explicit(&v->account_seq,
			      atomic_load_explicit(&v->account_seq, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
}

static void change_ends(struct vcpu *v)
{
	atomic_store_explicit(&v->account_seq,
			      atomic_load_explicit(&v->account_seq, memory_order_relaxed) + 1,
			      memory_order_release);
}

void vcpu_account_open(struct vcpu *v)
{
	v->account_fd = account_open();
	/* The slow tick reads the state of this thread (vmm/pvm/ops.c). */
	if (v->index == 0 && v->vm->pvm)
		v->stat_fd = open("/proc/thread-self/stat", O_RDONLY | O_CLOEXEC);
}

void vcpu_account_begin(struct vcpu *v, uint64_t now_ns)
{
	struct account_thread t;

	account_read_thread(v->account_fd, &t);
	change_begins(v);
	account_begin(&v->account, now_ns, &t);
	change_ends(v);
}

enum look { LOOK_MAYBE, LOOK_NOW };

static void go_on(struct vcpu *v, enum account_span next, uint64_t now_ns, enum look when)
{
	enum account_span span = (enum account_span)v->account.span;
	uint64_t len = now_ns - v->account.now_ns;
	bool look = when == LOOK_NOW || len >= ACCOUNT_LONG_NS ||
		    now_ns - v->account.looked_ns >= ACCOUNT_LOOK_NS;
	struct account_thread t;

	if (look)
		account_read_thread(v->account_fd, &t);
	change_begins(v);
	account_next(&v->account, next, now_ns);
	if (look)
		account_update(&v->account, &t, span, len);
	change_ends(v);
}

void vcpu_account(struct vcpu *v, enum account_span next, uint64_t now_ns)
{
	go_on(v, next, now_ns, LOOK_MAYBE);
}

void vcpu_account_update(struct vcpu *v, uint64_t now_ns)
{
	go_on(v, (enum account_span)v->account.span, now_ns, LOOK_NOW);
}

void vcpu_account_end(struct vcpu *v)
{
	vcpu_account_update(v, clock_mono_ns());
	if (v->account_fd >= 0)
		close(v->account_fd);
	v->account_fd = -1;
}

void vm_account(const struct vm *vm, unsigned int vcpu, struct account *out)
{
	const struct vcpu *v = &vm->vcpu[vcpu];
	unsigned int seq;

	do {
		seq = atomic_load_explicit(&v->account_seq, memory_order_acquire);
		count_copy(out, &v->account, sizeof(*out));
		atomic_thread_fence(memory_order_acquire);
	} while (seq & 1 || seq != atomic_load_explicit(&v->account_seq, memory_order_relaxed));
}

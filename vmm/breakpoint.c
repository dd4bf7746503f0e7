/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/breakpoint.h"

#include "base/clock.h"
#include "base/count.h"
#include "vmm/machine.h"
#include "vmm/control.h"
#include "vmm/debugreg.h"
#include "vmm/pvm.h"
#include "vmm/capture/capture.h"
#include "vmm/capture/capture_task.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#define RFLAGS_RF (1u << 16)
#define VECTOR_DB 1u

/*
 * Returns the first breakpoint of the group that counts together with i. Its reached_ns is the time
 * of the whole group.
 */
static unsigned int first_with(const struct vm *vm, unsigned int i)
{
	while (i && vm->cfg.breakpoint[i].with)
		i--;
	return i;
}

static bool is_done(const struct vm *vm, unsigned int i)
{
	return vm->cfg.breakpoint[i].once &&
	       atomic_load_explicit(&vm->reached_ns[first_with(vm, i)], memory_order_acquire);
}

void breakpoint_update(struct vcpu *v)
{
	for (unsigned int i = 0; i < v->vm->cfg.nbreakpoints; i++) {
		uint64_t want = is_done(v->vm, i)
					? 0
					: capture_linked_address(v, v->vm->cfg.breakpoint[i].addr);
		struct err e = { 0 };
		int ret;

		if (v->debug.addr[BREAKPOINT_SLOT(i)] == want)
			continue;
		ret = debugreg_set(v, BREAKPOINT_SLOT(i), want);
		if (!ret)
			continue;
		err_set(&e, -ret, "vCPU %u: KVM refuses a breakpoint at 0x%llx: %s", v->index,
			(unsigned long long)want, strerror(-ret));
		machine_end(v->vm, VM_END_ERROR, v, NULL, &e);
	}
}

bool breakpoint_counts(struct vm *vm, unsigned int i, uint64_t now_ns)
{
	const struct vm_breakpoint *b = &vm->cfg.breakpoint[i];
	uint_fast64_t never = 0;

	if (b->action == VM_BREAKPOINT_STOP && !vm_is_collecting(vm))
		return false;
	return atomic_compare_exchange_strong(&vm->reached_ns[first_with(vm, i)], &never, now_ns) ||
	       !b->once;
}

void breakpoint_reached(struct vcpu *v, unsigned int i)
{
	struct vm *vm = v->vm;
	const struct vm_breakpoint *b = &vm->cfg.breakpoint[i];
	uint64_t now = clock_mono_ns();

	if (!breakpoint_counts(vm, i, now))
		return;
	count_add(&v->stats.breakpoints[i], 1);
	capture_sample(v, &(struct capture_cause){
				  .now = now, .reason = SAMPLE_MARKER, .event = (uint8_t)i });
	if (b->action == VM_BREAKPOINT_PAUSE)
		vm_pause_request(vm);
	if (b->action == VM_BREAKPOINT_START)
		vm_collect(vm, true);
	if (b->action == VM_BREAKPOINT_STOP) {
		vm_collect(vm, false);
		machine_end(vm, VM_END_MARKER, v, NULL, NULL);
	}
	if (b->once) {
		for (unsigned int k = 0; k < vm->cfg.nbreakpoints; k++)
			if (first_with(vm, k) == first_with(vm, i))
				debugreg_set(v, BREAKPOINT_SLOT(k), 0);
		vm_control_notify(vm); /* makes the other vCPUs disarm it, too */
		if (vm->cfg.reached)
			vm->cfg.reached(vm->cfg.reached_ctx, i);
	}
}

int breakpoint_inject(struct vcpu *v, struct err *e)
{
	const struct kvm_debug_exit_arch *x = &v->run->debug.arch;
	int ret;

	if (x->exception != VECTOR_DB)
		return err_set(e, EIO, "vCPU %u: unexpected debug exit (vector %u) at rip 0x%llx",
			       v->index, x->exception, (unsigned long long)v->run->s.regs.regs.rip);
	count_add(&v->stats.debug_returned, 1);
	ret = debugreg_inject(v, x->dr6 & DR6_BS);
	return ret ? err_set(e, -ret, "vCPU %u: cannot deliver the guest's own #DB at 0x%llx: %s",
			     v->index, (unsigned long long)v->run->s.regs.regs.rip, strerror(-ret))
		   : 0;
}

int breakpoint_at(const struct vcpu *v)
{
	uint64_t rip = v->run->s.regs.regs.rip;

	if (!rip || !(v->run->debug.arch.dr6 & DR6_SLOTS))
		return -1;
	for (unsigned int i = 0; i < v->vm->cfg.nbreakpoints; i++)
		if (v->debug.addr[BREAKPOINT_SLOT(i)] == rip)
			return (int)i;
	return -1;
}

void breakpoint_resume(struct vcpu *v)
{
	v->run->s.regs.regs.rflags |= RFLAGS_RF;
	v->run->kvm_dirty_regs |= KVM_SYNC_X86_REGS;
}

int breakpoint_debug(struct vcpu *v, struct err *e)
{
	int i;

	if (v->vm->pvm)
		return v->vm->pvm->debug(v, e);
	i = breakpoint_at(v);
	if (i < 0)
		return breakpoint_inject(v, e);
	breakpoint_reached(v, (unsigned int)i);
	if (v->debug.addr[BREAKPOINT_SLOT(i)])
		breakpoint_resume(v);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ops: the table of pvm.h, for a machine of our own.
 */
#include "vmm/pvm.h"

#include "base/capstone.h"
#include "base/count.h"

#include "vmm/pvm/complete.h"
#include "vmm/pvm/cpuid.h"
#include "vmm/pvm/step.h"
#include "vmm/pvm/syscall_assist.h"
#include "vmm/pvm/tick.h"
#include "vmm/snapshot/vcpu_state.h"

#include <string.h>
#include <sys/ioctl.h>

#define RFLAGS_TF (1u << 8)

static bool ops_assists(const struct vm *vm)
{
	return vm->cfg.quirks->syscall_keeps_cpl;
}

static int ops_create(struct vm *vm, struct err *e)
{
	struct kvm_enable_cap cap = { .cap = KVM_CAP_EXIT_ON_EMULATION_FAILURE, .args = { 1 } };

	if (!vm->cfg.quirks->refuses_insns)
		return 0;
	if (!capstone_get(e)) /* vCPUs decode, and may not open files */
		return -ENOENT;
	if (!vm->cfg.host->emulation_exit || ioctl(vm->fd, KVM_ENABLE_CAP, &cap) == 0)
		return 0;
	return err_set(e, errno, "KVM_CAP_EXIT_ON_EMULATION_FAILURE: %s", strerror(errno));
}

static void ops_mask_cpuid(const struct vm *vm, struct kvm_cpuid2 *c)
{
	cpuid_mask(vm->cfg.quirks, c);
}

static int ops_start(struct vm *vm, struct err *e)
{
	return ops_assists(vm) ? syscall_assist_start(vm, e) : 0;
}

static void ops_enter(struct vcpu *v)
{
	if (ops_assists(v->vm))
		syscall_assist_enter(v);
}

static void ops_interrupted(struct vcpu *v)
{
	if (ops_assists(v->vm))
		syscall_assist_refresh(v);
}

static bool ops_wrmsr(struct vcpu *v)
{
	return ops_assists(v->vm) && syscall_assist_wrmsr(v);
}

static int ops_complete(struct vcpu *v, struct err *e)
{
	int ret;

	if (!v->vm->cfg.quirks->refuses_insns)
		return -ENOSYS;
	ret = complete_instruction(v, e);
	count_add(&v->stats.insns_completed, !ret);
	return ret;
}

static bool ops_is_in_syscall(const struct vcpu *v, uint64_t rip)
{
	const struct pvm_syscall *a = &v->pvm_state.syscall;

	return a->know_lstar && rip == a->lstar;
}

static void ops_save(const struct vcpu *v, struct vcpu_state *s)
{
	s->syscall = v->pvm_state.syscall;
	/* On the way past a breakpoint KVM has taken the guest's trap flag. */
	if (v->debug.stepping && v->pvm_state.step.trap_flag)
		s->regs.rflags |= RFLAGS_TF;
}

static int ops_restore(struct vcpu *v, const struct vcpu_state *s, struct err *e)
{
	return ops_assists(v->vm) ? syscall_assist_restore(v, &s->syscall, e) : 0;
}

static const struct pvm_ops ops = {
	.create = ops_create,
	.mask_cpuid = ops_mask_cpuid,
	.start = ops_start,
	.stop = syscall_assist_stop,
	.vcpu_runs = tick_vcpu_runs,
	.enter = ops_enter,
	.interrupted = ops_interrupted,
	.wrmsr = ops_wrmsr,
	.complete = ops_complete,
	.debug = step_debug,
	.is_in_syscall = ops_is_in_syscall,
	.save = ops_save,
	.restore = ops_restore,
};

const struct pvm_ops *pvm_ops_for(const struct quirks *q)
{
	return quirks_at_run_time(q) ? &ops : NULL;
}

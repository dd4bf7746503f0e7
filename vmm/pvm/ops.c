/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ops: the functions of pvm.h for a machine that kvmprof runs itself. */
#include "vmm/pvm.h"

#include "base/capstone.h"
#include "base/clock.h"
#include "base/count.h"
#include "base/proc.h"
#include "vmm/quirks.h"
#include "vmm/pvm/complete.h"
#include "vmm/pvm/simd_run.h"
#include "vmm/pvm/step.h"
#include "vmm/pvm/syscall_assist.h"
#include "vmm/snapshot/vcpu_state.h"

#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#define RFLAGS_TF (1u << 8)

/* CPUID leaves and bits, SDM vol. 2 table 3-8. */
#define L1_ECX_POPCNT (1u << 23)
#define L1_ECX_RDRAND (1u << 30)
#define L7_EBX_BMI1 (1u << 3)
#define L7_EBX_BMI2 (1u << 8)
#define L7_EBX_ERMS (1u << 9)
#define L7_EBX_RDSEED (1u << 18)
#define L7_EBX_SMAP (1u << 20)
#define L7_ECX_UMIP (1u << 2)
#define L7_EDX_FSRM (1u << 4)
#define LX1_ECX_LZCNT (1u << 5)

/* KVM_CPUID_FEATURES, Documentation/virt/kvm/x86/cpuid.rst. */
#define KVM_CPUID_FEATURES_LEAF 0x40000001u
/*
 * The features that use shared memory and need no hypercall: clocksource, nop_io_delay,
 * clocksource2, steal_time, clocksource_stable. Excluded are features that were never seen to work
 * where hypercalls hang: asynchronous page faults, EOIs and TLB flushes by shared memory.
 */
#define KVM_FEATURES_SAFE (1u << 0 | 1u << 1 | 1u << 3 | 1u << 5 | 1u << 24)

/* The CPU time clock of a thread id: make_thread_cpuclock() of include/linux/posix-timers.h. */
#define THREAD_CLOCK(tid) ((clockid_t)(~(unsigned int)(tid) << 3 | 6))

static bool ops_assists(const struct vm *vm)
{
	return vm->cfg.quirks->syscall_keeps_cpl;
}

static int ops_create(struct vm *vm, struct err *e)
{
	struct kvm_enable_cap cap = { .cap = KVM_CAP_EXIT_ON_EMULATION_FAILURE, .args = { 1 } };

	if (!vm->cfg.quirks->refuses_insns)
		return 0;
	if (!capstone_get(e)) /* vCPU threads decode, and must not open files */
		return -ENOENT;
	/*
	 * Without it SIMD instructions are not completed. vCPU threads cannot create a machine
	 * later.
	 */
	vm->vcpu[0].pvm_state.simd = simd_place_create(vm->cfg.host);
	for (unsigned int i = 1; i < vm->nvcpus; i++)
		vm->vcpu[i].pvm_state.simd = vm->vcpu[0].pvm_state.simd;
	if (!vm->cfg.host->emulation_exit || ioctl(vm->fd, KVM_ENABLE_CAP, &cap) == 0)
		return 0;
	return err_set(e, errno, "KVM_CAP_EXIT_ON_EMULATION_FAILURE: %s", strerror(errno));
}

/* Removes a leaf. A missing leaf reads as zeros. */
static void cpuid_drop_leaf(struct kvm_cpuid2 *c, uint32_t function)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < c->nent; i++)
		if (c->entries[i].function != function)
			c->entries[kept++] = c->entries[i];
	c->nent = kept;
}

/* Removes from *c, which has what KVM supports, the features that a guest must not use here. */
static void ops_mask_cpuid(const struct vm *vm, struct kvm_cpuid2 *c)
{
	const struct quirks *q = vm->cfg.quirks;

	for (unsigned int i = 0; i < c->nent; i++) {
		struct kvm_cpuid_entry2 *l = &c->entries[i];

		switch (l->function) {
		case 1:
			if (q->refuses_insns)
				l->ecx &= ~(L1_ECX_POPCNT | L1_ECX_RDRAND);
			break;
		case 7:
			if (l->index == 0 && q->refuses_insns) {
				l->ebx &= ~(L7_EBX_ERMS | L7_EBX_SMAP | L7_EBX_RDSEED);
				l->ecx &= ~L7_ECX_UMIP;
				l->edx &= ~L7_EDX_FSRM;
			}
			/* BMI2 goes with BMI1: compilers and Linux's zstd treat them as one. */
			if (l->index == 0 && q->zero_counts_wrong)
				l->ebx &= ~(L7_EBX_BMI1 | L7_EBX_BMI2);
			break;
		case 0x80000001:
			if (q->zero_counts_wrong)
				l->ecx &= ~LX1_ECX_LZCNT;
			break;
		case KVM_CPUID_FEATURES_LEAF:
			if (q->hypercalls_hang)
				l->eax &= KVM_FEATURES_SAFE;
			break;
		}
	}
	if (q->cpuid_leaks)
		cpuid_drop_leaf(c, 7);
}

static int ops_start(struct vm *vm, struct err *e)
{
	return ops_assists(vm) ? syscall_assist_start(vm, e) : 0;
}

static void ops_stop(struct vm *vm)
{
	syscall_assist_stop(vm);
	simd_place_destroy(vm->vcpu[0].pvm_state.simd);
	for (unsigned int i = 0; i < vm->nvcpus; i++)
		vm->vcpu[i].pvm_state.simd = NULL;
}

/* Returns whether the thread's state is R: running or in the run queue. */
static bool is_runnable(const struct vcpu *v)
{
	char text[PROC_STAT_MAX];
	const char *stat = proc_stat_of(v->stat_fd, text);

	return stat && *stat == 'R';
}

/*
 * Returns whether vCPU 0's thread runs or waits for a processor; false if it sleeps, halted. Stores
 * the processor time that it has had in *cpu_ns only if it returns true. Any thread.
 */
static bool ops_vcpu_runs(void *ctx, uint64_t *cpu_ns)
{
	struct vm *vm = ctx;
	int tid = atomic_load(&vm->vcpu[0].tid);
	struct timespec ts;

	if (!tid || !is_runnable(&vm->vcpu[0]) || clock_gettime(THREAD_CLOCK(tid), &ts) < 0)
		return false;
	*cpu_ns = (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
	return true;
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
	/* While a breakpoint is being passed, KVM has overwritten the guest's trap flag. */
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
	.stop = ops_stop,
	.vcpu_runs = ops_vcpu_runs,
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

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pvm: the work-arounds for a host whose KVM interprets ring 0 (quirks.h).
 *
 * The folder pvm/ implements them behind the tables here. The tables are NULL on hosts with VMX or
 * SVM and in a build without the folder (make PVM=0). Then the functions below do nothing, so their
 * callers read as for such a host. docs/hosts.md describes the work-arounds.
 */
#ifndef KVMPROF_VMM_PVM_H
#define KVMPROF_VMM_PVM_H

#include "base/err.h"
#include "vmm/machine.h"

#include <errno.h>
#include <linux/kvm.h>
#include <stdbool.h>
#include <stdint.h>

struct quirks;

struct vcpu_state;

/* The work-arounds. Each function checks itself which of the quirks the host has. */
struct pvm_ops {
	/* -- called by the thread that creates the machine ------------------------------------- */
	/* Called when the VM exists and its vCPUs do not. Returns 0, or -errno with *e recorded. */
	int (*create)(struct vm *vm, struct err *e);
	/* Removes from *c what a guest must not use on this host. */
	void (*mask_cpuid)(const struct vm *vm, struct kvm_cpuid2 *c);
	/* Called last before the vCPUs run. Returns 0, or -errno with *e recorded. */
	int (*start)(struct vm *vm, struct err *e);
	/* Called before the VM is closed, after start() or without it. */
	void (*stop)(struct vm *vm);
	/*
	 * Implements pit_load.runs; `vm` is a struct vm. Reports on the vCPU that gets the PIT's
	 * interrupts.
	 */
	bool (*vcpu_runs)(void *vm, uint64_t *cpu_ns);

	/* -- called by a vCPU's thread ------------------------------------------------------- */
	/* Called before each KVM_RUN. */
	void (*enter)(struct vcpu *v);
	/* Called after a KVM_RUN that was interrupted. */
	void (*interrupted)(struct vcpu *v);
	/*
	 * Handles KVM_EXIT_X86_WRMSR. Returns true if the access was to an MSR that pvm/ filters
	 * and is done.
	 */
	bool (*wrmsr)(struct vcpu *v);
	/*
	 * Executes an instruction that KVM refused to emulate. Returns 0; -ENOSYS, with *e unset,
	 * if it is no quirk of this host; or another -errno, with the instruction named in *e, if
	 * it cannot be executed.
	 */
	int (*complete)(struct vcpu *v, struct err *e);
	/* Handles KVM_EXIT_DEBUG, as breakpoint_debug(). */
	int (*debug)(struct vcpu *v, struct err *e);
	/*
	 * Returns whether a vCPU at CPL 3 is at its SYSCALL entry, so that it is in the kernel in
	 * fact.
	 */
	bool (*is_in_syscall)(const struct vcpu *v, uint64_t rip);

	/* -- called while the vCPU is stopped ------------------------------------------------ */
	/* Adds what a snapshot needs to *s, which has KVM's part already. */
	void (*save)(const struct vcpu *v, struct vcpu_state *s);
	/*
	 * Restores that part. Called before the first KVM_RUN, after KVM's part. Returns 0, or
	 * -errno with *e recorded.
	 */
	int (*restore)(struct vcpu *v, const struct vcpu_state *s, struct err *e);
};

/* Returns the work-arounds for these quirks; NULL: the host needs none, or this build has none. */
const struct pvm_ops *pvm_ops_for(const struct quirks *q);

/* -- call the function of the table, if there is one ----------------------------------------- */

static inline void pvm_enter(struct vcpu *v)
{
	if (v->vm->pvm)
		v->vm->pvm->enter(v);
}

static inline void pvm_interrupted(struct vcpu *v)
{
	if (v->vm->pvm)
		v->vm->pvm->interrupted(v);
}

static inline bool pvm_wrmsr(struct vcpu *v)
{
	return v->vm->pvm && v->vm->pvm->wrmsr(v);
}

static inline int pvm_complete(struct vcpu *v, struct err *e)
{
	return v->vm->pvm ? v->vm->pvm->complete(v, e) : -ENOSYS;
}

static inline bool pvm_is_in_syscall(const struct vcpu *v, uint64_t rip)
{
	return v->vm->pvm && v->vm->pvm->is_in_syscall(v, rip);
}

static inline int pvm_create(struct vm *vm, struct err *e)
{
	return vm->pvm ? vm->pvm->create(vm, e) : 0;
}

static inline void pvm_mask_cpuid(const struct vm *vm, struct kvm_cpuid2 *c)
{
	if (vm->pvm)
		vm->pvm->mask_cpuid(vm, c);
}

static inline int pvm_start(struct vm *vm, struct err *e)
{
	return vm->pvm ? vm->pvm->start(vm, e) : 0;
}

static inline void pvm_stop(struct vm *vm)
{
	if (vm->pvm)
		vm->pvm->stop(vm);
}

static inline void pvm_save(const struct vcpu *v, struct vcpu_state *s)
{
	if (v->vm->pvm)
		v->vm->pvm->save(v, s);
}

static inline int pvm_restore(struct vcpu *v, const struct vcpu_state *s, struct err *e)
{
	return v->vm->pvm ? v->vm->pvm->restore(v, s, e) : 0;
}

#endif

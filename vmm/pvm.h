/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pvm: what a machine needs of us on a host whose KVM interprets ring 0 (quirks.h).
 *
 * The folder pvm/ has all of it, behind the tables here. They are NULL on hosts with VMX or SVM
 * and in a build without the folder (make PVM=0). The functions below do nothing then, so that
 * their callers read as on such a host. What the work-arounds are: docs/hosts.md.
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

/* Each function looks by itself which of the quirks the host has. */
struct pvm_ops {
	/* -- the thread that makes the machine ------------------------------------------------ */
	/* The VM is there, its vCPUs are not. 0, or a negative error. */
	int (*create)(struct vm *vm, struct err *e);
	/* Take out of *c what a guest must not use on this host. */
	void (*mask_cpuid)(const struct vm *vm, struct kvm_cpuid2 *c);
	/* The last thing before the vCPUs run. 0, or a negative error. */
	int (*start)(struct vm *vm, struct err *e);
	/* Before the VM is closed; after start or without it. */
	void (*stop)(struct vm *vm);
	/* pit_load.runs, with the struct vm as ctx: of the vCPU that gets the PIT's interrupts. */
	bool (*vcpu_runs)(void *vm, uint64_t *cpu_ns);

	/* -- a vCPU's thread ------------------------------------------------------------------ */
	/* Before each KVM_RUN. */
	void (*enter)(struct vcpu *v);
	/* After a KVM_RUN that was interrupted. */
	void (*interrupted)(struct vcpu *v);
	/* KVM_EXIT_X86_WRMSR. true: the access is ours, and done. */
	bool (*wrmsr)(struct vcpu *v);
	/*
	 * KVM refused to emulate an instruction: carry it out. -ENOSYS: that is no quirk of this
	 * host, *e is not set. Other errors: it can't be done, *e names the instruction.
	 */
	int (*complete)(struct vcpu *v, struct err *e);
	/* KVM_EXIT_DEBUG, as breakpoint_debug(). */
	int (*debug)(struct vcpu *v, struct err *e);
	/* Does a vCPU at CPL 3 stand where its SYSCALL leads? Then it is in the kernel. */
	bool (*is_in_syscall)(const struct vcpu *v, uint64_t rip);

	/* -- a vCPU that stands still ----------------------------------------------------------- */
	/* Add what a snapshot needs to *s, which has KVM's part already. */
	void (*save)(const struct vcpu *v, struct vcpu_state *s);
	/* Before the first KVM_RUN, when KVM has its part. 0, or a negative error. */
	int (*restore)(struct vcpu *v, const struct vcpu_state *s, struct err *e);
};

/* NULL: the host needs none of it, or this is a build without it. */
const struct pvm_ops *pvm_ops_for(const struct quirks *q);

/* -- for the callers ------------------------------------------------------------------------- */

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

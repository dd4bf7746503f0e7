/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vcpu_state: converts everything that KVM knows about a stopped vCPU to bytes and back.
 *
 * Section "vcpu.N" of a snapshot: for each of KVM's structures a record, u32 length and the bytes
 * as in linux/kvm.h, in the order of struct vcpu_state; then what pvm/syscall_assist.c has learnt.
 * Bytes are parsed and checked before anything is set. Called by the thread that saves or restores
 * the machine, while the vCPU is stopped.
 */
#ifndef KVMPROF_VMM_SNAPSHOT_VCPU_STATE_H
#define KVMPROF_VMM_SNAPSHOT_VCPU_STATE_H

#include "base/buf.h"
#include "base/cursor.h"
#include "base/err.h"
#include "vmm/pvm_state.h"

#include <linux/kvm.h>
#include <stdint.h>

#define VCPU_STATE_VERSION 1u
#define VCPU_STATE_MAX_MSRS 512u
#define VCPU_STATE_MAX_CPUID 256u
#define VCPU_STATE_MAX_XSAVE 65536u

struct vcpu;

struct vcpu_state {
	struct kvm_mp_state mp_state;
	struct kvm_regs regs;
	struct kvm_sregs sregs;
	struct kvm_xcrs xcrs;
	struct kvm_debugregs debugregs; /* the guest's own */
	struct kvm_lapic_state lapic;
	struct kvm_vcpu_events events;
	const uint8_t *xsave; /* borrowed from the parsed bytes */
	uint32_t xsave_len;   /* at least sizeof(struct kvm_xsave) */
	uint32_t ncpuid, nmsrs;
	struct kvm_cpuid_entry2 cpuid[VCPU_STATE_MAX_CPUID];
	struct kvm_msr_entry msr[VCPU_STATE_MAX_MSRS];
	struct pvm_syscall syscall; /* all zero without pvm.h */
};

/*
 * Parses the bytes of a section; s->xsave refers to them. Returns 0, or -EINVAL with *e set if
 * vcpu_state_save() cannot have written them.
 */
int vcpu_state_parse(struct vcpu_state *s, struct cursor *in, struct err *e);

/*
 * Appends the state of the struct vcpu at `vcpu` to *out. Has the type of snapshot_part's function.
 * Returns 0, or -errno with *e set.
 */
int vcpu_state_save(void *vcpu, struct buf *out, struct err *e);
/*
 * Restores the state of the struct vcpu at `vcpu`, before its first KVM_RUN or at a reset. Has the
 * type of snapshot_part's function. Returns 0, or -errno with *e set.
 */
int vcpu_state_restore(void *vcpu, struct cursor *in, struct err *e);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vcpu_state: all that KVM knows of a vCPU that stands still, as bytes and back.
 *
 * Section "vcpu.N" of a snapshot: a record for each of KVM's structures, u32 length and
 * the bytes as linux/kvm.h has them, in the order of struct vcpu_state; then what
 * pvm/syscall_assist.c has learnt. Bytes are parsed and checked before anything is set.
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
	const uint8_t *xsave; /* borrowed from the bytes that were parsed */
	uint32_t xsave_len;   /* at least sizeof(struct kvm_xsave) */
	uint32_t ncpuid, nmsrs;
	struct kvm_cpuid_entry2 cpuid[VCPU_STATE_MAX_CPUID];
	struct kvm_msr_entry msr[VCPU_STATE_MAX_MSRS];
	struct pvm_syscall syscall; /* all zero without pvm.h */
};

/* -EINVAL: bytes that no vcpu_state_save() has written. */
int vcpu_state_parse(struct vcpu_state *s, struct cursor *in, struct err *e);

/* Struct vcpu as `what` of struct snapshot_part; restoring is for before its first KVM_RUN. */
int vcpu_state_save(void *vcpu, struct buf *out, struct err *e);
int vcpu_state_restore(void *vcpu, struct cursor *in, struct err *e);

#endif

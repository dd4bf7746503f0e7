/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * simd_run: runs one assembled instruction (simd_form) in ring 3 of a small virtual machine.
 *
 * No instruction that a guest causes runs in this process. The machine has one vCPU, a page of
 * code that it may not write and a page of data, where the memory operand ends at the end of
 * the page; the next page is missing. No device is there. The instruction is followed by an OUT,
 * which ends KVM_RUN. There is no IDT: an exception ends KVM_RUN as well. All is made before
 * the sandbox is entered, so that vCPU threads need no right to make a machine.
 */
#ifndef KVMPROF_VMM_PVM_SIMD_RUN_H
#define KVMPROF_VMM_PVM_SIMD_RUN_H

#include "vmm/kvm.h"
#include "vmm/pvm/simd_form.h"

#include <linux/kvm.h>
#include <stdint.h>

/* Registers before and after. A member that the form does not use is not changed. */
struct simd_values {
	struct kvm_xsave vectors; /* as of KVM_GET_XSAVE */
	uint64_t rax, rcx, rdx;
	uint64_t rflags; /* arithmetic flags and bit 1 only */
	uint8_t memory[SIMD_OPERAND_MAX];
};

/* The small machine. Any thread of the process that created it may use it: one at a time has it. */
struct simd_place;

/* Returns NULL if this host cannot make it. The caller ends it by simd_place_destroy(). */
struct simd_place *simd_place_create(const struct kvm_host *h);
void simd_place_destroy(struct simd_place *p);

/*
 * Runs f->code. Returns 0; -ENOTSUP if it raised an exception or is not what simd_form_check()
 * permits; -errno if KVM refuses. The values are changed only with 0.
 */
int simd_run(struct simd_place *p, const struct simd_form *f, struct simd_values *v);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * simd_run: runs one assembled instruction (simd_form) in ring 3 of a small virtual machine.
 *
 * No instruction from a guest runs in this process. The machine has one vCPU, a page of code that
 * it may not write, and a page of data, in which the memory operand ends at the end of the page;
 * the next page is missing. It has no devices. The instruction is followed by an OUT, which ends
 * KVM_RUN. There is no IDT, so an exception ends KVM_RUN as well. Everything is created before the
 * sandbox is entered, so that vCPU threads need no right to create a machine.
 */
#ifndef KVMPROF_VMM_PVM_SIMD_RUN_H
#define KVMPROF_VMM_PVM_SIMD_RUN_H

#include "vmm/kvm.h"
#include "vmm/pvm/simd_form.h"

#include <linux/kvm.h>
#include <stdint.h>

/* Registers and memory before and after. A member that the form does not use does not change. */
struct simd_values {
	struct kvm_xsave vectors; /* format of KVM_GET_XSAVE */
	uint64_t rax, rcx, rdx;
	uint64_t rflags; /* arithmetic flags and bit 1 only */
	uint8_t memory[SIMD_OPERAND_MAX];
};

/*
 * The small machine. Any thread of the process that created it may use it; a lock serialises them.
 */
struct simd_place;

/*
 * Creates the machine. Returns NULL if this host cannot run it. The caller frees it with
 * simd_place_destroy().
 */
struct simd_place *simd_place_create(const struct kvm_host *h);
/* Frees the machine. Accepts NULL. */
void simd_place_destroy(struct simd_place *p);

/*
 * Runs f->code. Returns 0; -ENOTSUP if it raised an exception or is not what simd_form_check()
 * permits; -errno if KVM refuses. *v is changed only on success.
 */
int simd_run(struct simd_place *p, const struct simd_form *f, struct simd_values *v);

#endif

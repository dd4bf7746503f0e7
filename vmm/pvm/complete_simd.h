/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * complete_simd: executes SSE and AVX instructions of a guest with the host's own.
 *
 * Guest and host share the processor, so the instruction itself shows best what it does. None of
 * the guest's bytes are executed: simd_form assembles a new instruction from a closed table, and
 * simd_run executes it once, in ring 3 of another machine, with the guest's vector registers
 * (KVM_GET_XSAVE), the value of its general register operand and a copy of its memory operand. If
 * it raises an exception, the guest's instruction stays refused.
 */
#ifndef KVMPROF_VMM_PVM_COMPLETE_SIMD_H
#define KVMPROF_VMM_PVM_COMPLETE_SIMD_H

#include "vmm/pvm/guest_insn.h"

/*
 * Executes the decoded instruction without advancing rip. Memory operands need not be aligned, and
 * SIMD floating-point exceptions are treated as masked. Returns 0; -ENOTSUP if it is none of these
 * or the processor lacks it; -EFAULT if its memory is not mapped; or -errno of KVM. After an error
 * nothing has changed. Called by the vCPU's thread.
 */
int complete_simd(struct guest_insn *g);

/* Returns whether complete_simd() writes the instruction's memory operand. */
bool complete_simd_stores(const struct guest_insn *g);

#endif

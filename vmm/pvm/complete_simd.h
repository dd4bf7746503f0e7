/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * complete_simd: SSE and AVX instructions of a guest, by this machine's own.
 *
 * Guest and host share the processor, so the instruction itself says best what it does. None of
 * the guest's bytes run: simd_form assembles an instruction of its own from a closed table, and
 * simd_run runs it once, in ring 3 of another machine, with the guest's vector registers (KVM_GET_XSAVE), the value of its
 * general register operand and a copy of its memory operand. An exception that it causes leaves the
 * guest's instruction refused.
 */
#ifndef KVMPROF_VMM_PVM_COMPLETE_SIMD_H
#define KVMPROF_VMM_PVM_COMPLETE_SIMD_H

#include "vmm/pvm/guest_insn.h"

/*
 * Carry out the decoded instruction but for advancing rip; on a vCPU's thread. Memory
 * operands need not be aligned, and SIMD floating-point exceptions are taken as masked.
 * -ENOTSUP: it is none of these, or the processor has it not; -EFAULT: its memory is not
 * mapped. Nothing has changed then.
 */
int complete_simd(struct guest_insn *g);

/* Returns whether complete_simd() writes the instruction's memory operand. */
bool complete_simd_stores(const struct guest_insn *g);

#endif

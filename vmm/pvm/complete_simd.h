/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * complete_simd: SSE and AVX instructions of a guest, by this machine's own.
 *
 * Guest and host share the processor, so the instruction itself says best what it does:
 * it runs here once, with the guest's vector registers (KVM_GET_XSAVE), its general
 * registers, and a copy of its memory operand. What it can't do to this process is told
 * in simd_form.h; an exception that it causes is caught.
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

#endif

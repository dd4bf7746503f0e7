/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * complete_bmi: executes BMI1, BMI2 and ADX instructions (SDM vol. 2).
 *
 * Kernels use them in ring 0 if CPUID has them: the zstd decoder uses shlx and bzhi, curve25519
 * mulx and adcx.
 */
#ifndef KVMPROF_VMM_PVM_COMPLETE_BMI_H
#define KVMPROF_VMM_PVM_COMPLETE_BMI_H

#include "vmm/pvm/guest_insn.h"

/*
 * Executes the decoded instruction without advancing rip. Returns 0; -ENOTSUP if it is none of
 * these; -EFAULT if its memory is not mapped. After an error nothing has changed. Called by the
 * vCPU's thread.
 */
int complete_bmi(struct guest_insn *g);

#endif

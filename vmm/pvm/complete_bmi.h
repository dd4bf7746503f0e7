/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * complete_bmi: what BMI1, BMI2 and ADX instructions do (SDM vol. 2).
 *
 * Kernels run them in ring 0 where CPUID has them: the zstd decoder's shlx and bzhi,
 * curve25519's mulx and adcx.
 */
#ifndef KVMPROF_VMM_PVM_COMPLETE_BMI_H
#define KVMPROF_VMM_PVM_COMPLETE_BMI_H

#include "vmm/pvm/guest_insn.h"

/*
 * Carry out the decoded instruction but for advancing rip. -ENOTSUP: it is none of these;
 * -EFAULT: its memory is not mapped. Nothing has changed then.
 */
int complete_bmi(struct guest_insn *g);

#endif

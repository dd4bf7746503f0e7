/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * complete: executes an instruction that the host's KVM emulator refused.
 *
 * It is used only on hosts with quirks.refuses_insns, where KVM reports the instruction with
 * KVM_EXIT_INTERNAL_ERROR, suberror EMULATION. The instruction is decoded with capstone. An
 * instruction that is not supported here ends the run with a message that names it.
 */
#ifndef KVMPROF_VMM_PVM_COMPLETE_H
#define KVMPROF_VMM_PVM_COMPLETE_H

#include "base/err.h"

struct vcpu;

/*
 * Executes the instruction at the vCPU's rip and marks the registers for writing back. Returns 0,
 * or -ENOTSUP with the instruction named in *e. Called by the vCPU's thread.
 */
int complete_instruction(struct vcpu *v, struct err *e);

#endif

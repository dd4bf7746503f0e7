/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * complete: finish an instruction that the host's KVM emulator refused.
 *
 * Only on hosts with quirks.refuses_insns, where KVM_EXIT_INTERNAL_ERROR with
 * suberror EMULATION hands the instruction to us. Decoded with capstone; what
 * is not known here ends the run with the instruction named.
 */
#ifndef KVMPROF_VMM_PVM_COMPLETE_H
#define KVMPROF_VMM_PVM_COMPLETE_H

#include "base/err.h"

struct vcpu;

/* 0: done, registers written back. -ENOTSUP: not known (message names it). */
int complete_instruction(struct vcpu *v, struct err *e);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * xstate: executes XSAVE and XRSTOR of a vCPU's extended state in software.
 *
 * KVM_GET_XSAVE and KVM_SET_XSAVE use the standard format, guests mostly the compacted one. Source:
 * SDM vol. 1, 13.4 "XSAVE area" to 13.11. Only the vCPU's thread calls these functions. They return
 * 0; -EFAULT if memory is not mapped; -ENOTSUP for what the processor refuses; or -errno of KVM.
 */
#ifndef KVMPROF_VMM_PVM_XSTATE_H
#define KVMPROF_VMM_PVM_XSTATE_H

#include "vmm/pvm/guest_insn.h"

/* Format of the area in memory: SDM vol. 1, 13.4. */
enum xstate_form { XSTATE_STANDARD, XSTATE_COMPACTED };

/* Saves the components in edx:eax to the area that is memory operand 0. */
int xstate_save(struct guest_insn *g, enum xstate_form form);
/* Restores the components in edx:eax from the area that is memory operand 0. */
int xstate_restore(struct guest_insn *g);
/*
 * Executes LDMXCSR with the 4 bytes of memory operand 0. Returns -ENOTSUP if a reserved bit is set,
 * which is a #GP on a processor.
 */
int xstate_load_mxcsr(struct guest_insn *g);
/* Executes STMXCSR with the 4 bytes of memory operand 0. */
int xstate_store_mxcsr(struct guest_insn *g);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * xstate: XSAVE and XRSTOR of a vCPU's extended state, done by hand.
 *
 * KVM_GET_XSAVE and KVM_SET_XSAVE speak the standard format; guests mostly use
 * the compacted one. Source: SDM vol. 1, 13.4 "XSAVE area" to 13.11.
 */
#ifndef KVMPROF_VMM_PVM_XSTATE_H
#define KVMPROF_VMM_PVM_XSTATE_H

#include "vmm/pvm/guest_insn.h"

/* Of the area in memory: SDM vol. 1, 13.4. */
enum xstate_form { XSTATE_STANDARD, XSTATE_COMPACTED };

/* Memory operand 0, requested components in edx:eax. */
int xstate_save(struct guest_insn *g, enum xstate_form form);
int xstate_restore(struct guest_insn *g);
/*
 * LDMXCSR and STMXCSR, of the 4 bytes of memory operand 0. -ENOTSUP: a reserved bit is set,
 * which is a #GP on a processor.
 */
int xstate_load_mxcsr(struct guest_insn *g);
int xstate_store_mxcsr(struct guest_insn *g);

#endif

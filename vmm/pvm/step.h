/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * step: past a breakpoint by a single step.
 *
 * KVM's emulator stops at a breakpoint again whatever the resume flag says. So the breakpoint is
 * disarmed for one instruction, which may take a fault instead: then it comes back, and the
 * breakpoint was reached once all the same. The work-around for SYSCALL has a breakpoint of its
 * own (syscall_assist.h), which may stand on the same instruction.
 */
#ifndef KVMPROF_VMM_PVM_STEP_H
#define KVMPROF_VMM_PVM_STEP_H

#include "base/err.h"

struct vcpu;

/* As breakpoint_debug(), on a host that needs work-arounds. */
int step_debug(struct vcpu *v, struct err *e);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * step: passes a breakpoint with a single step.
 *
 * KVM's emulator stops at a breakpoint again whatever the resume flag is. The breakpoint is
 * therefore disarmed for one instruction. If that instruction faults instead, it is reached again,
 * and still counts as reached once. The work-around for SYSCALL has a breakpoint of its own
 * (syscall_assist.h), which may be on the same instruction. Only the vCPU's thread calls this.
 */
#ifndef KVMPROF_VMM_PVM_STEP_H
#define KVMPROF_VMM_PVM_STEP_H

#include "base/err.h"

struct vcpu;

/*
 * Handles KVM_EXIT_DEBUG as breakpoint_debug(), on a host that needs work-arounds. Returns 0 if the
 * guest can continue, or -errno with *e recorded.
 */
int step_debug(struct vcpu *v, struct err *e);

#endif

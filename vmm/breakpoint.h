/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * breakpoint: moments that are reached by an instruction of the guest.
 *
 * Hardware breakpoints, so nothing is written into the guest and it sees nothing. Reached
 * in front of the instruction; a sample with reason SAMPLE_MARKER is taken, and the vCPU
 * goes on past it with the resume flag (pvm/step.h where KVM does not honour it).
 * On each vCPU's own thread.
 */
#ifndef KVMPROF_VMM_BREAKPOINT_H
#define KVMPROF_VMM_BREAKPOINT_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct vcpu;
struct vm;

/* The guest-debug register of breakpoint i (debugreg.h). */
#define BREAKPOINT_SLOT(i) ((i) + 1u)

/* Arm what can be armed by now, disarm what has been reached for good. */
void breakpoint_follow(struct vcpu *v);

/* KVM_EXIT_DEBUG: 0 when the guest can go on. */
int breakpoint_debug(struct vcpu *v, struct err *e);

/* -- the parts of that, for pvm/step.c and exact/stop.c ----------------------------------------------------- */

/*
 * Breakpoint i is reached now: does it count? Not a stop while nothing is collected, nor one that is asked for
 * once and was reached before; of two vCPUs that reach it at once one is the first.
 */
bool breakpoint_counts(struct vm *vm, unsigned int i, uint64_t now_ns);
/* The breakpoint that this debug exit is for; -1: none. */
int breakpoint_at(const struct vcpu *v);
/* Sample, count, and do what breakpoint i is for. It may be disarmed afterwards. */
void breakpoint_reached(struct vcpu *v, unsigned int i);
/* Have the processor ignore breakpoints at this instruction once. */
void breakpoint_resume(struct vcpu *v);
/* It was the guest's own trap flag or INT1: the guest gets its #DB. 0, or a negative error. */
int breakpoint_give_back(struct vcpu *v, struct err *e);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * breakpoint: hardware breakpoints on instructions of the guest.
 *
 * Nothing is written into the guest, and it cannot see the breakpoint. A breakpoint is reached
 * before its instruction runs. Then a sample with reason SAMPLE_MARKER is taken, and the vCPU
 * passes the instruction with the resume flag (pvm/step.h where KVM does not honour it). Only the
 * vCPU's own thread calls these functions, except breakpoint_counts(), which any thread may call.
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

/*
 * Arms the breakpoints whose addresses are known by now, and disarms those that will not be reached
 * again. Ends the machine if KVM refuses.
 */
void breakpoint_update(struct vcpu *v);

/* Handles KVM_EXIT_DEBUG. Returns 0 if the guest can continue, or -errno with *e recorded. */
int breakpoint_debug(struct vcpu *v, struct err *e);

/* -- the steps of breakpoint_debug(), for pvm/step.c and exact/stop.c -------------------------- */

/*
 * Records that breakpoint i was reached at now_ns, and returns whether that counts. A stop marker
 * does not count while no samples are collected. A breakpoint with `once` counts only the first
 * time; if two vCPUs reach it at once, only one of them counts.
 */
bool breakpoint_counts(struct vm *vm, unsigned int i, uint64_t now_ns);
/* Returns the index of the breakpoint that caused this debug exit, or -1. */
int breakpoint_at(const struct vcpu *v);
/*
 * Takes the sample of breakpoint i, counts it, and performs its action, if it counts. It may be
 * disarmed afterwards.
 */
void breakpoint_reached(struct vcpu *v, unsigned int i);
/* Makes the processor ignore breakpoints at the current instruction once (resume flag). */
void breakpoint_resume(struct vcpu *v);
/*
 * Delivers #DB to the guest after its own trap flag or INT1 caused the debug exit. Returns 0, or
 * -errno with *e recorded, also if the exit was no #DB.
 */
int breakpoint_inject(struct vcpu *v, struct err *e);

#endif

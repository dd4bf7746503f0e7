/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * breakpoint: moments that are reached by an instruction of the guest.
 *
 * Hardware breakpoints, so nothing is written into the guest and it sees nothing. Reached
 * in front of the instruction; a sample with reason SAMPLE_MARKER is taken, and the vCPU
 * goes on past it, with the resume flag where KVM honours it, else by a single step.
 * On each vCPU's own thread.
 */
#ifndef KVMPROF_VMM_BREAKPOINT_H
#define KVMPROF_VMM_BREAKPOINT_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct vcpu;

/* Of one vCPU. */
struct breakpoint_state {
	/* An exception came between the instruction and its step: it will be reached again. */
	bool again;
	unsigned int again_index;
	uint64_t again_rsp, again_cr3;
	bool trap_flag; /* the guest single-steps the instruction that is stepped over */
	uint64_t step_from;
};

/* Arm what can be armed by now, disarm what has been reached for good. */
void breakpoints_follow(struct vcpu *v);

/* KVM_EXIT_DEBUG: 0 when the guest can go on. */
int breakpoint_debug(struct vcpu *v, struct err *e);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * frame_state: a frame for why a task does not run.
 *
 * A sample of a task that waits (SAMPLE_OFFCPU) gets one more frame, the innermost: its
 * state as ps has it in brackets, "[S]" or "[D]", of the module "off-cpu". As in
 * frame_vmm.h, whose place in the address space it shares. Used by the consumer's thread alone.
 */
#ifndef KVMPROF_PROFILE_RECORD_HOST_FRAME_STATE_H
#define KVMPROF_PROFILE_RECORD_HOST_FRAME_STATE_H

#include "profile/record/host/frame_vmm.h"

/* One address for each letter, behind those of the devices. */
#define GUEST_STATE_BASE (GUEST_VMM_BASE + UINT64_C(0x1000))
#define GUEST_STATE_STEP 16u
#define GUEST_STATE_LETTERS 128u

struct guest_states {
	struct symtab *symbols; /* NULL until the first such sample; borrowed by the sink */
};

void guest_state_deinit(struct guest_states *g);

/* Does nothing for other samples. Errors are the sink's, and -ENOMEM. */
int guest_state_see(struct guest_states *g, struct sink *sink, const struct sample *s,
		    struct stack *stack, struct err *e);

/* Is this the address of such a frame? */
static inline bool guest_state_owns(uint64_t va)
{
	return va - GUEST_STATE_BASE < GUEST_STATE_LETTERS * GUEST_STATE_STEP;
}

#endif

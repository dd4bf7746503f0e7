/* SPDX-License-Identifier: GPL-2.0-or-later */
/* callstacks_state: the state that the files of callstacks share. */
#ifndef KVMPROF_VMM_EXACT_CALLSTACKS_STATE_H
#define KVMPROF_VMM_EXACT_CALLSTACKS_STATE_H

#include "vmm/exact/callstacks.h"

#define CALLSTACKS_SPACE \
	(~UINT64_C(0x1fff)) /* of CR3: neither PCID nor the half of page-table isolation */

struct frame {
	uint64_t sp; /* of the return address; of an interrupt: of what the processor pushed */
	uint64_t ret;
	uint64_t was_sp;	      /* of an interrupt: before it */
	struct callstacks_block *was; /* of an interrupt: what ran before it, else NULL */
	uint32_t node;		      /* that runs in this frame */
	uint32_t from;		      /* of an interrupt: the stack that it interrupted */
};

struct shadow {
	struct frame *frame;
	size_t n, cap;
	uint64_t space;		      /* of a program; 0: the kernel */
	uint64_t base;		      /* the highest stack pointer seen */
	uint64_t used;		      /* a clock for eviction */
	uint64_t left_sp;	      /* of a program: where it entered the kernel */
	struct callstacks_block *was; /* ... and what had run */
	uint32_t base_node;
	bool fresh; /* switched to, and it has not returned from there since: */
	size_t had; /* ... it had so many frames then */
};

/* Where one vCPU is: kept while another runs. */
struct callstacks_turn {
	struct callstacks_block *prev;
	uint32_t prev_count; /* where it was counted; CALLTREE_NONE: nowhere */
	uint32_t cur, node;
	bool user;
};

struct callstacks {
	struct callstacks_cpu cpu;
	struct calltree tree;
	struct callstacks_turn now; /* of the vCPU that runs */
	struct callstacks_turn turn[CALLSTACKS_MAX_CPUS];
	uint32_t on, ncpus; /* stack i is what vCPU i has before it has loaded one of its own */
	struct shadow *stack;
	size_t nstacks, stacks_cap;
	uint64_t clock;
	struct callstacks_block **chunk;
	size_t nblocks, chunks_cap;
	uint32_t *block_at;
	uint32_t block_mask;
	struct callstacks_stats stats;
};

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* callstacks_state: the state that the callstacks files share. Private to them. */
#ifndef KVMPROF_VMM_EXACT_CALLSTACKS_STATE_H
#define KVMPROF_VMM_EXACT_CALLSTACKS_STATE_H

#include "vmm/exact/callstacks.h"

/* CR3 bits of an address space: no PCID, no isolation half */
#define CALLSTACKS_SPACE (~UINT64_C(0x1fff))

struct frame {
	/* Stack address of the return address; for an interrupt: of the pushed frame. */
	uint64_t sp;
	uint64_t ret;
	/* Interrupt only: the stack pointer before it. */
	uint64_t was_sp;
	/* Interrupt only: the block that was executed before it. NULL in a call's frame. */
	struct callstacks_block *was;
	uint32_t node; /* calltree node of the code that runs in this frame */
	uint32_t from; /* interrupt only: index of the stack that it interrupted */
};

struct shadow {
	struct frame *frame;
	size_t n, cap;
	uint64_t space;	  /* address space of a program; 0: the kernel */
	uint64_t base;	  /* highest stack pointer seen */
	uint64_t used;	  /* value of callstacks.clock at the last use, for eviction */
	uint64_t left_sp; /* program only: stack pointer when it entered the kernel */
	/* Program only: the last block before it entered the kernel. */
	struct callstacks_block *was;
	/* The calltree node that applies while the stack has no frame. */
	uint32_t base_node;
	bool fresh; /* switched to, and no frame below `had` returned since */
	size_t had; /* number of frames at that switch */
};

/* The position of one vCPU, saved while another one runs. */
struct callstacks_turn {
	/* The block executed last; NULL: none, so that chains restart. */
	struct callstacks_block *prev;
	uint32_t prev_count; /* index of its calltree count; CALLTREE_NONE: not counted */
	/* The current stack and the current calltree node. */
	uint32_t cur, node;
	bool user;
};

struct callstacks {
	struct callstacks_cpu cpu;
	struct calltree tree;
	struct callstacks_turn now; /* state of the running vCPU */
	struct callstacks_turn turn[CALLSTACKS_MAX_CPUS];
	/* The running vCPU. Stack i < ncpus is vCPU i's until it loads a stack pointer. */
	uint32_t on, ncpus;
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

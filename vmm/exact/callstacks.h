/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * callstacks: who called the block that runs, by shadow stacks.
 *
 * Fed with the start of each block that a processor runs; several take turns (callstacks_on()), and share
 * stacks, as tasks go from one to another. Calls push a frame with its place on the
 * guest's stack, and a return pops it; what does not fit that is settled by the stack pointer: frames
 * below it are gone (longjmp, signals, a changed return address), and elsewhere it is another stack
 * (task switch, interrupt stack), where the frames of that stack go on. An interrupt keeps what it
 * interrupted in its frame, and IRET takes that up again; its own calls begin a chain of their own.
 * Programs have stacks by address space and stack pointer.
 *
 * Self counts need none of that and are exact: a block left early (a fault, MMIO) is counted as far
 * as it ran. Chains are as good as the rules above.
 *
 * Bounded by the caps. One thread; no I/O. What it reads of the guest it asks for at the moment.
 */
#ifndef KVMPROF_VMM_EXACT_CALLSTACKS_H
#define KVMPROF_VMM_EXACT_CALLSTACKS_H

#include "vmm/exact/blockend.h"
#include "vmm/exact/calltree.h"

#define CALLSTACKS_MAX_CPUS 17u
#define CALLSTACKS_MAX_STACKS 4096u /* the one that was used longest ago gives way */
#define CALLSTACKS_MAX_DEPTH 1024u /* frames of a stack; deeper calls are counted in the last one */
#define CALLSTACKS_MAX_BLOCKS (8u << 20)
#define CALLSTACKS_REACH 0x4000u /* bytes below its highest address that a kernel stack has */
#define CALLSTACKS_REACH_USER 0x800000u

struct callstacks_block {
	uint64_t pc, end; /* the end: behind its last instruction */
	uint64_t target;  /* of BLOCKEND_JUMP and _CALL with has_target */
	uint32_t number;  /* in calltree_count */
	uint16_t insns;
	const uint16_t *off; /* of each instruction from pc; NULL: insns is 1 at most */
	uint8_t kind;	     /* enum blockend_kind of its last instruction */
	bool has_target;
	bool moves_sp;	/* one of its instructions does */
	bool interrupt; /* private: an interrupt began here once */
	struct callstacks_block
		*alias;	      /* private: the same code at the address where it ran last */
	bool reached;	      /* private: by a jump or call whose target is not in the code */
	uint32_t node, count; /* private: where it was counted last */
};

struct callstacks_regs {
	uint64_t sp, cr3;
	unsigned int cpl;
};

struct callstacks_cpu {
	void *ctx;
	uint64_t (*sp)(void *ctx);
	uint64_t (*pc)(void *ctx); /* in 16-bit code without its segment */
	void (*regs)(void *ctx, struct callstacks_regs *out);
	/* All of it, or false. */
	bool (*read)(void *ctx, uint64_t va, void *dst, size_t len);
};

struct callstacks;

/* ncpus: 1 to CALLSTACKS_MAX_CPUS. max_nodes, max_counts: see calltree_init(). -ENOMEM. */
int callstacks_create(struct callstacks **out, const struct callstacks_cpu *cpu, uint32_t ncpus,
		      uint32_t max_nodes, uint32_t max_counts);
void callstacks_destroy(struct callstacks *c);

/*
 * A block to be fed: copied, and off with it; the same one for equal blocks. NULL: beyond the cap, or
 * no memory; such blocks are lost and must be told by callstacks_lose().
 */
struct callstacks_block *callstacks_block(struct callstacks *c, const struct callstacks_block *b);
void callstacks_lose(struct callstacks *c);

/* What runs from now on runs on this one, from 0 on; the others stay where they are. */
void callstacks_on(struct callstacks *c, uint32_t cpu);
/*
 * It begins to run now; where, is asked of the processor unless the block before leads to its pc: QEMU
 * shares blocks between all addresses that a page is mapped at.
 */
void callstacks_run(struct callstacks *c, struct callstacks_block *b);

/* Nothing has been counted yet. Stacks stay as they are. */
void callstacks_zero(struct callstacks *c);

/*
 * From now on counts are of this part of the run (calltree.h): chains that are there go on in it. The stacks
 * stay as they are.
 */
void callstacks_part(struct callstacks *c, uint32_t part);

struct callstacks_stats {
	uint64_t blocks; /* distinct ones */
	uint64_t lost;	 /* runs of blocks without a place to count them */
	uint64_t folded; /* calls that were counted at their caller */
	uint64_t deep;	 /* calls deeper than the cap */
	uint64_t stacks, evicted;
	uint64_t interrupts, partial, switches;
	uint64_t strange; /* places where no rule said how control had got there */
};

const struct calltree *callstacks_tree(const struct callstacks *c);
const struct callstacks_block *callstacks_block_at(const struct callstacks *c, uint32_t number);
void callstacks_stats(const struct callstacks *c, struct callstacks_stats *out);
/* The chain of what runs now, innermost first: return addresses, and entries of functions. */
uint32_t callstacks_node(const struct callstacks *c);

#endif

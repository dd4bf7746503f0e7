/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * callstacks: finds the callers of each executed block with shadow stacks.
 *
 * The caller reports the start of every block that a vCPU executes (callstacks_run()) and every
 * change of the vCPU (callstacks_switch_cpu()). All vCPUs share one set of stacks, since tasks migrate. A
 * call pushes a frame together with its address on the guest's stack, and a return pops it.
 * Everything that does not fit is decided by the stack pointer: frames below it are removed
 * (longjmp, signals, a modified return address); a stack pointer elsewhere selects another stack
 * (task switch, interrupt stack) and its frames. An interrupt's frame stores what was interrupted,
 * and IRET resumes that; calls from the interrupt handler form a chain of their own. A program's
 * stacks are identified by address space and stack pointer.
 *
 * Self counts do not depend on these rules and are exact: a block that is left early (a fault,
 * MMIO) is counted only as far as it was executed. Call chains are as good as the rules.
 *
 * Memory is limited by the constants below. All functions must be called from one thread (QEMU's,
 * in the plugin) and do no I/O; they read guest registers and memory through struct callstacks_cpu
 * while they run.
 */
#ifndef KVMPROF_VMM_EXACT_CALLSTACKS_H
#define KVMPROF_VMM_EXACT_CALLSTACKS_H

#include "vmm/exact/blockend.h"
#include "vmm/exact/calltree.h"

#define CALLSTACKS_MAX_CPUS 17u
#define CALLSTACKS_MAX_STACKS 4096u /* the least recently used one is evicted */
/* Frames of one stack; deeper calls are counted in the last frame. */
#define CALLSTACKS_MAX_DEPTH 1024u
#define CALLSTACKS_MAX_BLOCKS (8u << 20)
/* Assumed size of a kernel stack, bytes below its highest seen address. */
#define CALLSTACKS_REACH 0x4000u
#define CALLSTACKS_REACH_USER 0x800000u

/* One block of translated code: a straight run of instructions. */
struct callstacks_block {
	uint64_t pc, end; /* end: address after the last instruction */
	uint64_t target;  /* absolute; valid for BLOCKEND_JUMP and _CALL with has_target */
	uint32_t number;  /* index of the block, used in calltree_count.block */
	uint16_t insns;
	/* Offset of each instruction from pc; may be NULL if insns is at most 1. */
	const uint16_t *off;
	uint8_t kind; /* enum blockend_kind of its last instruction */
	bool has_target;
	bool moves_sp;	/* whether any of its instructions loads the stack pointer */
	bool interrupt; /* private: an interrupt has begun with this block before */
	/* Private: the same code at the virtual address where it was executed last. */
	struct callstacks_block *alias;
	bool reached; /* private: was entered by an indirect jump, indirect call or return */
	uint32_t node, count; /* private: where it was counted last */
};

/* The registers of the vCPU that runs. */
struct callstacks_regs {
	uint64_t sp, cr3;
	unsigned int cpl;
};

/* Access to the vCPU that runs; each function is called with ctx, during a callstacks_ call. */
struct callstacks_cpu {
	void *ctx;
	uint64_t (*sp)(void *ctx);
	uint64_t (*pc)(void *ctx); /* in 16-bit code the offset within the segment */
	void (*regs)(void *ctx, struct callstacks_regs *out);
	/*
	 * Copies len bytes from guest-virtual address va. Returns false, with dst undefined,
	 * unless all could be read.
	 */
	bool (*read)(void *ctx, uint64_t va, void *dst, size_t len);
};

struct callstacks;

/*
 * Creates an empty set of stacks for ncpus vCPUs (1 to CALLSTACKS_MAX_CPUS) and copies *cpu.
 * calltree_init() explains max_nodes and max_counts. Returns 0, or -ENOMEM without writing *out.
 * The caller frees *out with callstacks_destroy(), which accepts NULL.
 */
int callstacks_create(struct callstacks **out, const struct callstacks_cpu *cpu, uint32_t ncpus,
		      uint32_t max_nodes, uint32_t max_counts);
/* Frees c and everything that it owns, interned blocks included. NULL is accepted. */
void callstacks_destroy(struct callstacks *c);

/*
 * Returns the interned copy of *b; equal blocks share one. b->off is copied too. The copy belongs
 * to c and is valid until callstacks_destroy(). Returns NULL if out of memory or beyond
 * CALLSTACKS_MAX_BLOCKS; the caller must then call callstacks_lose() each time the block is
 * executed.
 */
struct callstacks_block *callstacks_block(struct callstacks *c, const struct callstacks_block *b);
/*
 * Records one execution of a block that could not be interned. Call chains restart at the next
 * block.
 */
void callstacks_lose(struct callstacks *c);

/*
 * Switches to vCPU `cpu` (0-based): later calls report what this vCPU executes. The positions of
 * the other vCPUs are kept. A number that is too large is ignored.
 */
void callstacks_switch_cpu(struct callstacks *c, uint32_t cpu);
/*
 * Counts one execution of block b, which begins now. The block's virtual address is read from the
 * vCPU unless the preceding block leads to b->pc, because QEMU shares translated blocks among all
 * addresses at which a page is mapped.
 */
void callstacks_run(struct callstacks *c, struct callstacks_block *b);

/* Sets all counts and statistics to 0. The stacks are kept. */
void callstacks_zero(struct callstacks *c);

/*
 * Attributes all later counts to part `part` of the run (see calltree.h). The stacks are kept:
 * existing call chains are re-created within the new part.
 */
void callstacks_set_part(struct callstacks *c, uint32_t part);

struct callstacks_stats {
	uint64_t blocks; /* number of distinct blocks */
	uint64_t lost;	 /* block executions that could not be counted */
	uint64_t folded; /* calls that were counted at their caller */
	uint64_t deep;	 /* calls deeper than CALLSTACKS_MAX_DEPTH */
	uint64_t stacks, evicted;
	uint64_t interrupts, partial, switches;
	uint64_t strange; /* transitions that no rule explains */
};

/* Returns the tree with all counts. It belongs to c and changes with each call. */
const struct calltree *callstacks_tree(const struct callstacks *c);
/*
 * Returns block number `number`, which must be less than the number of distinct blocks. It belongs
 * to c.
 */
const struct callstacks_block *callstacks_block_at(const struct callstacks *c, uint32_t number);
/* Copies the statistics up to now. */
void callstacks_stats(const struct callstacks *c, struct callstacks_stats *out);
/*
 * Returns the calltree node of the block that is running now; the tree's parents lead to its
 * callers.
 */
uint32_t callstacks_node(const struct callstacks *c);

#endif

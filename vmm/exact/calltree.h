/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * calltree: stores exact counts by calling context.
 *
 * A node is one call chain: its parent, the return address of the call, and the called function's
 * first address. In each node, blocks (straight runs of instructions) are counted each time they
 * are executed. Addresses are the guest's, without names. The tree is limited by the constants
 * below: a call beyond them is counted at its parent (`folded`), a block as lost; nothing is
 * dropped without a counter. Not thread-safe: the caller serialises calls on one tree.
 */
#ifndef KVMPROF_VMM_EXACT_CALLTREE_H
#define KVMPROF_VMM_EXACT_CALLTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CALLTREE_MAX_NODES (8u << 20)
#define CALLTREE_MAX_COUNTS (32u << 20)
#define CALLTREE_NONE UINT32_MAX

/* The kinds of roots: how the outermost function of a chain was entered. */
enum calltree_kind {
	CALLTREE_KERNEL,    /* kernel code that no program called */
	CALLTREE_SYSCALL,   /* kernel code entered by a program's system call */
	CALLTREE_INTERRUPT, /* interrupts and exceptions, whatever they interrupt */
	CALLTREE_USER,	    /* code of a program */
	CALLTREE_KINDS
};

struct calltree_node {
	uint32_t parent; /* index of the caller's node; CALLTREE_NONE: this is a root */
	uint32_t kind;	 /* enum calltree_kind; the same for all nodes below a root */
	uint64_t ret;	 /* return address; in a root: the program's address space (CR3), else 0 */
	uint64_t entry;	 /* the function's first address; in a root: the part of the run */
	uint64_t calls;
};

struct calltree_count {
	uint32_t node, block; /* block: a number that the caller chose */
	uint64_t times;
};

struct calltree {
	struct calltree_node *node;
	struct calltree_count *count;
	uint32_t nnodes, ncounts;
	uint64_t folded; /* calls for which no node was available */
	uint64_t lost;	 /* unused by the tree itself: executions without a count */
	/* The part of the run, from 0, for roots created from now on. The caller sets it. */
	uint32_t part;
	/* private */
	uint32_t max_nodes, max_counts, nodes_cap, counts_cap;
	uint32_t *node_at, *count_at; /* index + 1 by hash; 0: empty slot */
	uint32_t node_mask, count_mask;
};

/*
 * Initialises *t, empty. max_nodes and max_counts are CALLTREE_MAX_NODES and CALLTREE_MAX_COUNTS,
 * or smaller numbers in tests. Returns 0 or -ENOMEM. calltree_deinit() frees what t owns.
 */
int calltree_init(struct calltree *t, uint32_t max_nodes, uint32_t max_counts);
void calltree_deinit(struct calltree *t);

/* Sets all counts, `folded` and `lost` to 0. The nodes remain. */
void calltree_zero(struct calltree *t);

/*
 * Returns the index of the root of `kind` and of address space `space` (0 unless CALLTREE_USER) in
 * t->part, and creates it if it is missing. Without room it returns node 0, or CALLTREE_NONE if
 * the tree is empty, and increments t->folded.
 */
uint32_t calltree_root(struct calltree *t, enum calltree_kind kind, uint64_t space);
/*
 * Counts one call from node `from` with return address ret to the function at entry. Returns the
 * index of the callee's node; without room it returns `from` and increments t->folded.
 */
uint32_t calltree_call(struct calltree *t, uint32_t from, uint64_t ret, uint64_t entry);
/*
 * Returns the node with the same chain as `node` in the current t->part, creating it if necessary.
 * Counts no call. Without room or memory it returns `node`.
 */
uint32_t calltree_copy_chain(struct calltree *t, uint32_t node);
/*
 * Returns the index in t->count at which `block` is counted in `node`, with times 0 if new, or
 * CALLTREE_NONE without room. The caller increments its `times`.
 */
uint32_t calltree_count_of(struct calltree *t, uint32_t node, uint32_t block);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * calltree: exact counts by calling context.
 *
 * A node is one way to have got somewhere: its parent, the address behind the call, and the
 * function's first address. In it, blocks (straight runs of instructions) are counted each time they
 * run. Addresses are the guest's, without names. Within the caps below; what does not fit is counted
 * at the parent (calls) or as lost (blocks), never dropped silently. One thread.
 */
#ifndef KVMPROF_VMM_EXACT_CALLTREE_H
#define KVMPROF_VMM_EXACT_CALLTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CALLTREE_MAX_NODES (8u << 20)
#define CALLTREE_MAX_COUNTS (32u << 20)
#define CALLTREE_NONE UINT32_MAX

/* What a chain begins with. */
enum calltree_kind {
	CALLTREE_KERNEL,    /* the kernel's own */
	CALLTREE_SYSCALL,   /* entered from a program */
	CALLTREE_INTERRUPT, /* interrupts and exceptions, whatever they interrupted */
	CALLTREE_USER,	    /* a program */
	CALLTREE_KINDS
};

struct calltree_node {
	uint32_t parent; /* node; CALLTREE_NONE: a root */
	uint32_t kind;	 /* enum calltree_kind; of all nodes below a root the same */
	uint64_t ret;	 /* behind the call; of a root: the program's address space (CR3), else 0 */
	uint64_t entry;	 /* first address; of a root: the part of the run that it is of */
	uint64_t calls;
};

struct calltree_count {
	uint32_t node, block; /* block: the caller's number */
	uint64_t times;
};

struct calltree {
	struct calltree_node *node;
	struct calltree_count *count;
	uint32_t nnodes, ncounts;
	uint64_t folded; /* calls that had no room for a node */
	uint64_t lost;	 /* blocks that ran without room for a count */
	uint32_t part;	 /* of the run, from 0 on: that of roots from now on; the caller's to set */
	/* private */
	uint32_t max_nodes, max_counts, nodes_cap, counts_cap;
	uint32_t *node_at, *count_at; /* index + 1 by hash */
	uint32_t node_mask, count_mask;
};

/* The caps, or smaller ones for tests. -ENOMEM. */
int calltree_init(struct calltree *t, uint32_t max_nodes, uint32_t max_counts);
void calltree_deinit(struct calltree *t);

/* All counts become 0; nodes stay. */
void calltree_zero(struct calltree *t);

/* The root of a kind, and of a program's address space. Without room: node 0, if there is one. */
uint32_t calltree_root(struct calltree *t, enum calltree_kind kind, uint64_t space);
/* One call from a node. Without room: the node itself. */
uint32_t calltree_call(struct calltree *t, uint32_t from, uint64_t ret, uint64_t entry);
/* The same chain in the part that it is now; no call is counted. Without room: the node itself. */
uint32_t calltree_again(struct calltree *t, uint32_t node);
/* Where a block is counted in a node; CALLTREE_NONE: no room. */
uint32_t calltree_count_of(struct calltree *t, uint32_t node, uint32_t block);

#endif

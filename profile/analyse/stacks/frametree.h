/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * frametree: stacks folded into a tree of calls with their weights.
 *
 * Node 0 is the root and stands for everything. A child is a function called from
 * its parent (or, reversed, a caller of it). Two sets can go into one tree: the
 * first slot is the profile that is shown, the second one what it is compared with;
 * functions are the same when their name, DSO and kind are. Weights are in the sets'
 * unit (ns, or what the event counts).
 *
 * Pure: no I/O. Texts of names are the sets', which must live as long as the tree.
 * One thread at a time; const once frametree_finish() was called.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_STACKS_FRAMETREE_H
#define KVMPROF_PROFILE_ANALYSE_STACKS_FRAMETREE_H

#include "profile/analyse/stacks/stackset.h"

#define FRAMETREE_MAX_DEPTH 1024u /* deeper frames are cut off, and counted */
#define FRAMETREE_MAX_NODES (8u << 20)
#define FRAMETREE_NONE UINT32_MAX

/* Kinds beyond a stackset's. */
enum frametree_kind {
	FRAMETREE_KIND_IDLE = STACKSET_KINDS, /* all its time the vCPU was halted */
	FRAMETREE_KIND_TASK,		      /* not a function: a task's name */
	FRAMETREE_KINDS
};

enum frametree_slot { FRAMETREE_SHOWN, FRAMETREE_BASE, FRAMETREE_SLOTS };

enum frametree_task {
	FRAMETREE_TASK_NONE,
	FRAMETREE_TASK_COMM,   /* tasks of one name are one frame below their stacks */
	FRAMETREE_TASK_THREAD, /* "name pid/tid" */
};

struct frametree_name {
	const char *text, *dso; /* dso is "" where there is none */
	uint8_t kind;		/* enum stackset_kind or frametree_kind */
};

struct frametree_node {
	uint32_t name;			  /* index */
	uint32_t parent, child, next;	  /* nodes; FRAMETREE_NONE at the end */
	uint32_t depth;			  /* of the root: 0 */
	uint64_t weight[FRAMETREE_SLOTS]; /* with all above it */
	uint64_t self, samples, idle;	  /* of the first slot */
};

struct frametree {
	struct frametree_node *node;
	struct frametree_name *name;
	size_t nnodes, nnames;
	uint32_t max_depth;
	uint64_t kind_self[FRAMETREE_KINDS]; /* weight by what ran; of the first slot */
	uint64_t cut;			     /* stacks deeper than FRAMETREE_MAX_DEPTH */
	struct frametree_private *priv;
};

struct frametree_options {
	bool reverse;	     /* callers above what they call; without tasks */
	bool clones_are_one; /* names are without the suffixes of compilers' clones (identity.h) */
	enum frametree_task task;
};

int frametree_create(struct frametree **out, const struct frametree_options *opt, struct err *e);
void frametree_destroy(struct frametree *t);

/* Fold all stacks of a set into a slot. */
int frametree_add(struct frametree *t, const struct stackset *s, enum frametree_slot slot,
		  struct err *e);

/* Order children by name, DSO and kind. */
int frametree_finish(struct frametree *t, struct err *e);

/* What chooses a node's colour: its function's kind, or that it was idle all the time. */
uint8_t frametree_kind(const struct frametree *t, uint32_t node);

/* A node's share of its whole set less its share of the base: -1..1. */
double frametree_delta(const struct frametree *t, uint32_t node);

#endif

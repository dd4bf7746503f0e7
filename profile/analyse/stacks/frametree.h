/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * frametree: merges stacks into a tree of calls with their weights.
 *
 * Node 0 is the root, which stands for all stacks. A child is a function called by its parent (or,
 * reversed, a caller of it). One tree can hold two sets: the first slot has the profile that is
 * shown, the second one the base of a comparison. Functions are equal if name, DSO and kind are.
 * Weights are in the sets' unit (ns, or counts of the event).
 *
 * There is no I/O. Texts of names belong to the sets, which must outlive the tree. Not thread-safe:
 * the caller serialises calls on one tree; it is const after frametree_finish().
 */
#ifndef KVMPROF_PROFILE_ANALYSE_STACKS_FRAMETREE_H
#define KVMPROF_PROFILE_ANALYSE_STACKS_FRAMETREE_H

#include "profile/analyse/stacks/stackset.h"

#define FRAMETREE_MAX_DEPTH 1024u /* deeper frames are dropped, and the stacks counted */
#define FRAMETREE_MAX_NODES (8u << 20)
#define FRAMETREE_NONE UINT32_MAX

/* Kinds in addition to enum stackset_kind. */
enum frametree_kind {
	FRAMETREE_KIND_IDLE = STACKSET_KINDS, /* the vCPU was halted all the time */
	FRAMETREE_KIND_TASK,		      /* not a function but a task's name */
	FRAMETREE_KINDS
};

enum frametree_slot { FRAMETREE_SHOWN, FRAMETREE_BASE, FRAMETREE_SLOTS };

enum frametree_task {
	FRAMETREE_TASK_NONE,
	FRAMETREE_TASK_COMM,   /* tasks of one name share a frame below their stacks */
	FRAMETREE_TASK_THREAD, /* a frame for each thread, "name pid/tid" */
};

struct frametree_name {
	const char *text, *dso; /* dso is "" if there is none */
	uint8_t kind;		/* enum stackset_kind or frametree_kind */
};

struct frametree_node {
	uint32_t name;			  /* index into frametree.name */
	uint32_t parent, child, next;	  /* indexes of nodes; FRAMETREE_NONE at the end */
	uint32_t depth;			  /* 0 for the root */
	uint64_t weight[FRAMETREE_SLOTS]; /* including all descendants */
	/* in the first slot: own weight, samples, and weight while halted */
	uint64_t self, samples, idle;
};

struct frametree {
	struct frametree_node *node;
	struct frametree_name *name;
	size_t nnodes, nnames;
	uint32_t max_depth;
	uint64_t kind_self[FRAMETREE_KINDS]; /* own weight by kind, of the first slot */
	uint64_t cut;			     /* number of stacks deeper than FRAMETREE_MAX_DEPTH */
	struct frametree_private *priv;
};

struct frametree_options {
	bool reverse;	     /* callers are children of what they call; without tasks */
	bool clones_are_one; /* remove the suffixes of compilers' clones from names (identity.h) */
	enum frametree_task task;
};

/*
 * Creates an empty tree; the caller frees it with frametree_destroy(). *opt is copied. Returns 0 or
 * -ENOMEM.
 */
int frametree_create(struct frametree **out, const struct frametree_options *opt, struct err *e);
/* Frees t; does nothing for NULL. */
void frametree_destroy(struct frametree *t);

/* Adds all stacks of a set to a slot. Returns 0, -ENOMEM, or -E2BIG beyond FRAMETREE_MAX_NODES. */
int frametree_add(struct frametree *t, const struct stackset *s, enum frametree_slot slot,
		  struct err *e);

/*
 * Sorts children by name, DSO and kind. Call it after the last frametree_add(). Returns 0 or
 * -ENOMEM.
 */
int frametree_finish(struct frametree *t, struct err *e);

/*
 * Returns the kind that chooses a node's colour: its function's kind, or FRAMETREE_KIND_IDLE if all
 * its weight is idle.
 */
uint8_t frametree_kind(const struct frametree *t, uint32_t node);

/* Returns a node's share of its whole set minus its share of the base: -1 to 1. */
double frametree_delta(const struct frametree *t, uint32_t node);

#endif

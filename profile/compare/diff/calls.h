/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * diff_calls: the callers or the callees of a function in both sides of a comparison, as a tree.
 *
 * Each stack of all runs is kept as a sequence of functions with its share of its side. A node is a
 * function with the share of the stacks that pass through it, the nodes above it and the row's
 * function. A stack counts once. Used by diff.c; one thread uses an object at a time.
 */
#ifndef KVMPROF_PROFILE_COMPARE_DIFF_CALLS_H
#define KVMPROF_PROFILE_COMPARE_DIFF_CALLS_H

#include "base/err.h"
#include "base/table.h"
#include "base/texts.h"
#include "profile/analyse/stacks/identity.h"

#include <stddef.h>
#include <stdint.h>

enum diff_direction {
	DIFF_CALLEES, /* what the function called, from its outermost call on */
	DIFF_CALLERS, /* who called it, from its innermost call on */
};

#define DIFF_CALLS_NONE UINT32_MAX
#define DIFF_CALLS_MAX_DEPTH 128u

/* Shares are 0 to 1, the mean of a side's runs. */
struct diff_node {
	const char *name;
	double base, head;
	uint32_t func;
	uint32_t child, next; /* indexes of nodes; DIFF_CALLS_NONE at the end; largest first */
};

/* Node 0 is the function itself. */
struct diff_tree {
	struct diff_node *node; /* owned; the caller frees it with diff_tree_deinit() */
	size_t n, cap;
};

struct diff_stack {
	size_t first; /* index into diff_calls.func_of; innermost function first */
	uint32_t n;
	bool head;
	double share;
};

struct diff_calls {
	struct table func; /* struct identity */
	uint32_t *func_of;
	size_t nframes, frame_cap;
	struct diff_stack *stack;
	size_t nstacks, stack_cap;
	bool chains; /* some stack has more than one function */
};

void diff_calls_init(struct diff_calls *c);
void diff_calls_deinit(struct diff_calls *c);
/*
 * Adds a stack of a set with its share; `texts` owns the names. Returns 0 or -ENOMEM.
 */
int diff_calls_add(struct diff_calls *c, const struct identity_names *names, struct texts *texts,
		   uint32_t stack, const struct diff_stack *with);
/*
 * Builds the tree of a function, whose texts are those of the object; nodes whose share is below
 * min_share on both sides are omitted. Returns 0 or -ENOMEM.
 */
int diff_calls_tree(const struct diff_calls *c, const struct identity *of, enum diff_direction way,
		    double min_share, struct diff_tree *out);
void diff_tree_deinit(struct diff_tree *t);

#endif

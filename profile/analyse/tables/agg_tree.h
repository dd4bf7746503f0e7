/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * agg_tree: the callers or the callees of a row, as a tree.
 *
 * A node is a sequence of functions that all its stacks share. By callee, the root is the row's
 * function and the nodes below have called it. By caller, the tree has the opposite direction and
 * begins, as in perf, with the outermost function for stacks in which the row's function was
 * innermost, otherwise with that function.
 *
 * Weights are those of whole stacks; children are sorted by weight. Nodes below the minimum weight
 * are omitted. The agg must have kept its stacks. Not thread-safe: the caller serialises calls on
 * one object.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_TABLES_AGG_TREE_H
#define KVMPROF_PROFILE_ANALYSE_TABLES_AGG_TREE_H

#include "profile/analyse/tables/agg.h"

#define AGG_TREE_MAX_DEPTH 128u /* levels of nodes; each may have many functions */

struct agg_node {
	const uint32_t *func; /* n indexes into agg.func, in the direction of the tree */
	uint32_t n;
	uint64_t weight;
	uint32_t child, nchildren; /* first index in agg_tree.node, and number */
};

struct agg_tree {
	struct agg_node *node;
	uint32_t nnodes;
	size_t cap;
	uint32_t nroots; /* the first nodes are the roots */
	uint32_t *words; /* owned, as node; the nodes' func points into it */
};

struct agg_tree_options {
	bool caller;	     /* true: by caller, false: by callee */
	bool innermost_only; /* only stacks in which the row's function was innermost */
	uint64_t min_weight;
};

/*
 * Builds the tree of a row of a, which must outlive it. Returns 0 or -ENOMEM; the caller frees *out
 * with agg_tree_deinit().
 */
int agg_tree_build(struct agg_tree *out, const struct agg *a, const struct agg_row *row,
		   const struct agg_tree_options *opt);
/* Frees the nodes and leaves an empty tree. */
void agg_tree_deinit(struct agg_tree *t);

#endif

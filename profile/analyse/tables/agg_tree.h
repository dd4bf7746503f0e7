/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * agg_tree: the callers or the callees of a row, as a tree.
 *
 * A node is a run of functions that all its stacks have in common. By callee the
 * root is the row's function and what is below has called it. By caller the tree
 * goes the other way, and begins, as perf's does, with the outermost function for
 * stacks in which the row's function was innermost, else with that function.
 *
 * Weights are those of whole stacks; children are sorted by weight. What weighs
 * less than the limit is left out. One thread; the agg must have kept its stacks.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_TABLES_AGG_TREE_H
#define KVMPROF_PROFILE_ANALYSE_TABLES_AGG_TREE_H

#include "profile/analyse/tables/agg.h"

#define AGG_TREE_MAX_DEPTH 128u /* of branches; each may have many functions */

struct agg_node {
	const uint32_t *func; /* n indexes of agg.func, in the direction of the tree */
	uint32_t n;
	uint64_t weight;
	uint32_t child, nchildren; /* indexes of agg_tree.node */
};

struct agg_tree {
	struct agg_node *node;
	uint32_t nnodes;
	size_t cap;
	uint32_t nroots; /* the first nodes */
	uint32_t *words; /* what nodes point at */
};

struct agg_tree_options {
	bool caller;	     /* else callee */
	bool innermost_only; /* stacks in which the row's function was innermost */
	uint64_t min_weight;
};

/* *out is freed by agg_tree_deinit(). -ENOMEM. */
int agg_tree_build(struct agg_tree *out, const struct agg *a, const struct agg_row *row,
		   const struct agg_tree_options *opt);
void agg_tree_deinit(struct agg_tree *t);

#endif

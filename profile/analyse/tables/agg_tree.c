/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/tables/agg_tree.h"

#include "base/array.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The path of one stack through the tree. */
struct agg_tree_path {
	const uint32_t *func;
	uint32_t n;
	uint64_t weight;
};

void agg_tree_deinit(struct agg_tree *t)
{
	free(t->node);
	free(t->words);
	memset(t, 0, sizeof(*t));
}

/*
 * Stores the frames of a stack that are in the tree, [*from, *to) counted from the innermost;
 * returns false if the row is not in it.
 */
static bool part_of(const struct agg *a, const struct agg_stack *s, const struct agg_row *row,
		    const struct agg_tree_options *opt, uint32_t *from, uint32_t *to)
{
	const uint32_t *row_of = a->row_of + s->first;

	*from = 0;
	*to = s->n;
	if (s->n && row_of[0] == row->id)
		return true;
	if (opt->innermost_only)
		return false;
	/* In a recursion, use the call that is nearest to the tree's root. */
	if (opt->caller) {
		while (*to && row_of[*to - 1] != row->id)
			(*to)--;
		return *to;
	}
	while (*from < s->n && row_of[*from] != row->id)
		(*from)++;
	return *from < s->n;
}

static int compare_paths(const void *a, const void *b)
{
	const struct agg_tree_path *x = a, *y = b;
	uint32_t n = x->n < y->n ? x->n : y->n;

	for (uint32_t i = 0; i < n; i++)
		if (x->func[i] != y->func[i])
			return x->func[i] < y->func[i] ? -1 : 1;
	return x->n < y->n ? -1 : x->n > y->n;
}

/* Stores all stacks of the row as sorted paths; the tree owns their words. */
static int agg_tree_collect(struct agg_tree *t, struct agg_tree_path **out, size_t *count,
			    const struct agg *a, const struct agg_row *row,
			    const struct agg_tree_options *opt)
{
	size_t words = 0, n = 0;
	struct agg_tree_path *path;
	uint32_t from, to, *at;

	for (size_t i = 0; i < a->nkept; i++) {
		if (!part_of(a, &a->stack[i], row, opt, &from, &to))
			continue;
		n++;
		words += to - from;
	}
	path = calloc(n ? n : 1, sizeof(*path));
	at = t->words = malloc((words ? words : 1) * sizeof(*at));
	if (!path || !at) {
		free(path);
		return -ENOMEM;
	}
	*count = n;
	n = 0;
	for (size_t i = 0; i < a->nkept; i++) {
		const struct agg_stack *s = &a->stack[i];
		const uint32_t *func = a->func_of + s->first;

		if (!part_of(a, s, row, opt, &from, &to))
			continue;
		path[n++] =
			(struct agg_tree_path){ .func = at, .n = to - from, .weight = s->weight };
		for (uint32_t k = 0; k < to - from; k++)
			*at++ = opt->caller ? func[to - 1 - k] : func[from + k];
	}
	qsort(path, n, sizeof(*path), compare_paths);
	*out = path;
	return 0;
}

/* The paths [lo, hi) of a node, which are equal in their first `depth` functions. */
struct agg_tree_range {
	size_t lo, hi;
	uint64_t weight;
};

static int compare_ranges(const void *a, const void *b)
{
	const struct agg_tree_range *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

/* Splits the paths of r by their function at `depth`, sorted by weight. */
static int agg_tree_split(struct agg_tree_range **out, size_t *count,
			  const struct agg_tree_path *path, const struct agg_tree_range *r,
			  uint32_t depth, uint64_t min_weight)
{
	struct agg_tree_range *part = NULL;
	size_t n = 0, cap = 0;

	for (size_t i = r->lo; i < r->hi;) {
		struct agg_tree_range next = { .lo = i };

		/* Paths that end here come first. */
		if (path[i].n == depth) {
			i++;
			continue;
		}
		for (; i < r->hi && path[i].func[depth] == path[next.lo].func[depth]; i++)
			next.weight += path[i].weight;
		next.hi = i;
		if (!next.weight || next.weight < min_weight)
			continue;
		if (ARRAY_ROOM(part, n, cap)) {
			free(part);
			return -ENOMEM;
		}
		part[n++] = next;
	}
	if (n)
		qsort(part, n, sizeof(*part), compare_ranges);
	*out = part;
	*count = n;
	return 0;
}

static int add_nodes(struct agg_tree *t, size_t n)
{
	if (t->nnodes + n > UINT32_MAX || ARRAY_FIT(t->node, t->nnodes + n, t->cap))
		return -ENOMEM;
	t->nnodes += (uint32_t)n;
	return 0;
}

struct growth {
	struct agg_tree *tree;
	const struct agg_tree_path *path; /* sorted */
	uint64_t min_weight;
};

/*
 * Adds the nodes below a node, for the paths r from depth on; stores their first index and number.
 */
static int agg_tree_grow(const struct growth *g, const struct agg_tree_range *r, uint32_t depth,
			 unsigned int level, uint32_t *first, uint32_t *count)
{
	cleanup_free struct agg_tree_range *part = NULL;
	const struct agg_tree_path *path = g->path;
	struct agg_tree *t = g->tree;
	size_t n = 0;
	int ret = agg_tree_split(&part, &n, path, r, depth, g->min_weight);

	if (ret)
		return ret;
	*first = t->nnodes;
	*count = (uint32_t)n;
	ret = add_nodes(t, n);
	for (size_t i = 0; i < n && !ret; i++) {
		const struct agg_tree_path *a = &path[part[i].lo], *b = &path[part[i].hi - 1];
		struct agg_node node = { .func = a->func + depth, .weight = part[i].weight };
		uint32_t end = depth + 1;

		/*
		 * The paths are sorted: a common beginning of the first and the last one is common
		 * to all.
		 */
		while (end < a->n && end < b->n && a->func[end] == b->func[end])
			end++;
		node.n = end - depth;
		if (level + 1 < AGG_TREE_MAX_DEPTH)
			ret = agg_tree_grow(g, &part[i], end, level + 1, &node.child,
					    &node.nchildren);
		t->node[*first + i] = node;
	}
	return ret;
}

int agg_tree_build(struct agg_tree *out, const struct agg *a, const struct agg_row *row,
		   const struct agg_tree_options *opt)
{
	cleanup_free struct agg_tree_path *path = NULL;
	struct agg_tree_range all = { 0 };
	uint32_t first;
	int ret;

	memset(out, 0, sizeof(*out));
	ret = agg_tree_collect(out, &path, &all.hi, a, row, opt);
	if (!ret) {
		const struct growth g = { out, path, opt->min_weight };

		ret = agg_tree_grow(&g, &all, 0, 0, &first, &out->nroots);
	}
	if (ret)
		agg_tree_deinit(out);
	return ret;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/diff/calls.h"

#include "base/array.h"

#include <errno.h>
#include <stdlib.h>

void diff_calls_init(struct diff_calls *c)
{
	*c = (struct diff_calls){ .func = TABLE_OF(struct identity, identity_equal) };
}

void diff_calls_deinit(struct diff_calls *c)
{
	table_deinit(&c->func);
	free(c->func_of);
	free(c->stack);
}

int diff_calls_add(struct diff_calls *c, const struct identity_names *names, struct texts *texts,
		   uint32_t stack, const struct diff_stack *with)
{
	const struct stackset_stack *s = &names->set->stack[stack];
	struct diff_stack kept = *with;
	bool fresh;

	kept.first = c->nframes;
	kept.n = s->n;
	c->chains |= s->n > 1;
	for (uint32_t i = 0; i < s->n; i++) {
		struct identity id = identity_of(names, s, names->set->frame[s->frame[i]].func);

		id.name = texts_add(texts, id.name);
		id.dso = texts_add(texts, id.dso);
		if (!id.name || !id.dso || ARRAY_ROOM(c->func_of, c->nframes, c->frame_cap) ||
		    table_add(&c->func, identity_hash(&id), &id, &c->func_of[c->nframes], &fresh))
			return -ENOMEM;
		c->nframes++;
	}
	if (ARRAY_ROOM(c->stack, c->nstacks, c->stack_cap))
		return -ENOMEM;
	c->stack[c->nstacks++] = kept;
	return 0;
}

/* Finds the child of a node, or adds it; stores its index. */
static int child_of(struct diff_tree *t, uint32_t parent, uint32_t func, uint32_t *out)
{
	for (*out = t->node[parent].child; *out != DIFF_CALLS_NONE; *out = t->node[*out].next)
		if (t->node[*out].func == func)
			return 0;
	if (ARRAY_ROOM(t->node, t->n, t->cap))
		return -ENOMEM;
	t->node[t->n] = (struct diff_node){ .func = func,
					    .child = DIFF_CALLS_NONE,
					    .next = t->node[parent].child };
	*out = t->node[parent].child = (uint32_t)t->n++;
	return 0;
}

static void weigh(struct diff_node *node, const struct diff_stack *s)
{
	if (s->head)
		node->head += s->share;
	else
		node->base += s->share;
}

/* Adds the functions beside position `at` of a stack, in one direction. */
static int add_stack(const struct diff_calls *c, struct diff_tree *t, const struct diff_stack *s,
		     uint32_t at, enum diff_direction way)
{
	uint32_t node = 0, depth = 0;

	weigh(&t->node[0], s);
	while (depth++ < DIFF_CALLS_MAX_DEPTH && (way == DIFF_CALLERS ? ++at < s->n : at-- > 0)) {
		if (child_of(t, node, c->func_of[s->first + at], &node) < 0)
			return -ENOMEM;
		weigh(&t->node[node], s);
	}
	return 0;
}

static double larger(const struct diff_node *n)
{
	return n->base > n->head ? n->base : n->head;
}

/* Omits small nodes below `parent`, and sorts the others, largest first. */
static void sort_children(const struct diff_calls *c, struct diff_tree *t, uint32_t parent,
			  double min_share)
{
	uint32_t left = t->node[parent].child, next;

	t->node[parent].child = DIFF_CALLS_NONE;
	for (; left != DIFF_CALLS_NONE; left = next) {
		struct diff_node *n = &t->node[left];
		uint32_t *at = &t->node[parent].child;

		next = n->next;
		if (larger(n) < min_share)
			continue;
		n->name = ((const struct identity *)c->func.item)[n->func].name;
		while (*at != DIFF_CALLS_NONE && larger(&t->node[*at]) >= larger(n))
			at = &t->node[*at].next;
		n->next = *at;
		*at = left;
		sort_children(c, t, left, min_share);
	}
}

/* Returns the position of the function in a stack, or s->n. */
static uint32_t position_of(const struct diff_calls *c, const struct diff_stack *s, uint32_t func,
			    enum diff_direction way)
{
	for (uint32_t i = 0; i < s->n; i++) {
		uint32_t at = way == DIFF_CALLERS ? i : s->n - 1 - i;

		if (c->func_of[s->first + at] == func)
			return at;
	}
	return s->n;
}

int diff_calls_tree(const struct diff_calls *c, const struct identity *of, enum diff_direction way,
		    double min_share, struct diff_tree *out)
{
	struct diff_tree t = { 0 };
	uint32_t func;

	if (ARRAY_ROOM(t.node, t.n, t.cap))
		return -ENOMEM;
	t.node[t.n++] = (struct diff_node){ .name = of->name,
					    .child = DIFF_CALLS_NONE,
					    .next = DIFF_CALLS_NONE };
	if (table_find(&c->func, identity_hash(of), of, &func)) {
		for (size_t i = 0; i < c->nstacks; i++) {
			const struct diff_stack *s = &c->stack[i];
			uint32_t at = position_of(c, s, func, way);

			if (at < s->n && add_stack(c, &t, s, at, way) < 0) {
				diff_tree_deinit(&t);
				return -ENOMEM;
			}
		}
	}
	sort_children(c, &t, 0, min_share);
	*out = t;
	return 0;
}

void diff_tree_deinit(struct diff_tree *t)
{
	free(t->node);
	*t = (struct diff_tree){ 0 };
}

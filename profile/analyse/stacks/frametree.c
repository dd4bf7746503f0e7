/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/stacks/frametree.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/table.h"
#include "base/texts.h"
#include "profile/analyse/stacks/identity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct frametree_private {
	struct frametree_options opt;
	struct table nodes, names; /* hold the tree's node and name arrays */
	struct texts clones;	   /* names without suffixes, made here */
	char **text;		   /* names of tasks, made here */
	size_t ntexts, texts_cap;
};

static bool equal_name(const void *pa, const void *pb, const void *ctx)
{
	const struct frametree_name *a = pa, *b = pb;

	(void)ctx;
	return a->kind == b->kind && !strcmp(a->text, b->text) && !strcmp(a->dso, b->dso);
}

static bool equal_node(const void *pa, const void *pb, const void *ctx)
{
	const struct frametree_node *a = pa, *b = pb;

	(void)ctx;
	return a->parent == b->parent && a->name == b->name;
}

static int intern_name(struct frametree *t, const struct frametree_name *want, uint32_t *out)
{
	uint64_t hash = hash_text(hash_text(HASH_START + want->kind, want->text) + 1, want->dso);
	struct table *names = &t->priv->names;
	bool fresh;

	if (table_add(names, table_mix(hash, 0), want, out, &fresh))
		return -ENOMEM;
	t->name = names->item;
	t->nnames = names->n;
	return 0;
}

static int child_of(struct frametree *t, uint32_t parent, uint32_t name, uint32_t *out)
{
	const struct frametree_node like = {
		.name = name,
		.parent = parent,
		.child = FRAMETREE_NONE,
		.next = t->node[parent].child,
		.depth = t->node[parent].depth + 1,
	};
	struct table *nodes = &t->priv->nodes;
	bool fresh;

	if (table_add(nodes, table_mix(parent, name), &like, out, &fresh))
		return -ENOMEM;
	if (!fresh)
		return 0;
	if (nodes->n > FRAMETREE_MAX_NODES)
		return -E2BIG;
	t->node = nodes->item;
	t->nnodes = nodes->n;
	t->node[parent].child = *out;
	if (like.depth > t->max_depth)
		t->max_depth = like.depth;
	return 0;
}

int frametree_create(struct frametree **out, const struct frametree_options *opt, struct err *e)
{
	static const struct frametree_name all = { "all", "", FRAMETREE_KIND_TASK };
	/* The root's parent is not a node, so no lookup finds it as a child. */
	static const struct frametree_node root = { .parent = FRAMETREE_NONE,
						    .child = FRAMETREE_NONE,
						    .next = FRAMETREE_NONE };
	struct frametree *t = calloc(1, sizeof(*t));
	uint32_t index;
	bool fresh;

	if (t)
		t->priv = calloc(1, sizeof(*t->priv));
	if (t && t->priv) {
		t->priv->opt = *opt;
		t->priv->names = TABLE_OF(struct frametree_name, equal_name);
		t->priv->nodes = TABLE_OF(struct frametree_node, equal_node);
	}
	if (!t || !t->priv || intern_name(t, &all, &index) ||
	    table_add(&t->priv->nodes, 0, &root, &index, &fresh)) {
		frametree_destroy(t);
		return err_set(e, ENOMEM, "out of memory for the call tree");
	}
	t->node = t->priv->nodes.item;
	t->nnodes = 1;
	*out = t;
	return 0;
}

void frametree_destroy(struct frametree *t)
{
	if (!t)
		return;
	if (t->priv) {
		for (size_t i = 0; i < t->priv->ntexts; i++)
			free(t->priv->text[i]);
		free(t->priv->text);
		texts_deinit(&t->priv->clones);
		table_deinit(&t->priv->nodes);
		table_deinit(&t->priv->names);
	}
	free(t->priv);
	free(t);
}

/* Stores the name of the frame for a task, which is below the task's stacks. */
static int task_name(struct frametree *t, const struct stackset_task *task, uint32_t *out)
{
	struct frametree_private *p = t->priv;
	struct frametree_name n = { task->comm, "", FRAMETREE_KIND_TASK };
	size_t before = t->nnames;
	char *text;
	int ret;

	if (p->opt.task == FRAMETREE_TASK_COMM)
		return intern_name(t, &n, out);
	if (ARRAY_ROOM(p->text, p->ntexts, p->texts_cap) ||
	    asprintf(&text, "%s %u/%u", task->comm, task->pid, task->tid) < 0)
		return -ENOMEM;
	n.text = text;
	ret = intern_name(t, &n, out);
	if (ret || t->nnames == before) /* the name was known, or could not be stored */
		free(text);
	else
		p->text[p->ntexts++] = text;
	return ret;
}

/* Maps indexes of a set's functions and tasks to those of the tree's names. */
struct frametree_mapping {
	uint32_t *func, *task;
};

static void mapping_deinit(struct frametree_mapping *m)
{
	free(m->func);
	free(m->task);
}

/* Returns the name that a function has in the tree; NULL if out of memory. */
static const char *func_text(struct frametree *t, const struct stackset_func *f)
{
	return t->priv->opt.clones_are_one && f->named ? identity_plain(&t->priv->clones, f->name)
						       : f->name;
}

static int mapping_init(struct frametree_mapping *m, struct frametree *t, const struct stackset *s)
{
	bool tasks = t->priv->opt.task != FRAMETREE_TASK_NONE && !t->priv->opt.reverse;
	int ret = 0;

	m->func = calloc(s->nfuncs + 1, sizeof(*m->func));
	m->task = tasks ? calloc(s->ntasks + 1, sizeof(*m->task)) : NULL;
	if (!m->func || (tasks && !m->task))
		return -ENOMEM;
	for (size_t i = 0; i < s->nfuncs && !ret; i++) {
		struct frametree_name n = { func_text(t, &s->func[i]), s->func[i].dso,
					    s->func[i].kind };

		ret = n.text ? intern_name(t, &n, &m->func[i]) : -ENOMEM;
	}
	for (size_t i = 0; tasks && i < s->ntasks && !ret; i++)
		ret = task_name(t, &s->task[i], &m->task[i]);
	return ret;
}

static void frametree_count(struct frametree_node *n, const struct stackset_stack *st,
			    enum frametree_slot slot)
{
	n->weight[slot] += st->weight;
	if (slot != FRAMETREE_SHOWN)
		return;
	n->samples += st->samples;
	if (st->mode == STACKSET_IDLE)
		n->idle += st->weight;
}

static int add_stack(struct frametree *t, const struct stackset *s, const struct stackset_stack *st,
		     const struct frametree_mapping *m, enum frametree_slot slot)
{
	uint32_t at = 0, n = st->n, before = 0;
	int ret;

	frametree_count(&t->node[0], st, slot);
	if (n > FRAMETREE_MAX_DEPTH) {
		n = FRAMETREE_MAX_DEPTH;
		t->cut += slot == FRAMETREE_SHOWN;
	}
	if (m->task) {
		ret = child_of(t, 0, m->task[st->task], &at);
		if (ret)
			return ret;
		frametree_count(&t->node[at], st, slot);
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t frame = st->frame[t->priv->opt.reverse ? i : st->n - 1 - i];
		uint32_t func = s->frame[frame].func;

		/* This is the other part of a function that a compiler has split. */
		if (t->priv->opt.clones_are_one && i && func != before &&
		    m->func[func] == m->func[before] &&
		    strcmp(s->func[func].name, s->func[before].name) != 0)
			continue;
		before = func;
		ret = child_of(t, at, m->func[func], &at);
		if (ret)
			return ret;
		frametree_count(&t->node[at], st, slot);
	}
	if (slot == FRAMETREE_SHOWN) {
		const struct stackset_func *f =
			st->n ? &s->func[s->frame[st->frame[0]].func] : NULL;
		uint8_t kind = f ? f->kind : (uint8_t)STACKSET_KIND_UNKNOWN;

		t->node[at].self += st->weight;
		t->kind_self[st->mode == STACKSET_IDLE ? FRAMETREE_KIND_IDLE : kind] += st->weight;
	}
	return 0;
}

int frametree_add(struct frametree *t, const struct stackset *s, enum frametree_slot slot,
		  struct err *e)
{
	struct frametree_mapping m = { 0 };
	int ret = mapping_init(&m, t, s);

	for (size_t i = 0; i < s->nstacks && !ret; i++)
		ret = add_stack(t, s, &s->stack[i], &m, slot);
	mapping_deinit(&m);
	if (ret == -E2BIG)
		return err_set(e, E2BIG,
			       "the call tree has more than %u nodes: show less of the profile "
			       "(--time, --comm, --kernel-only)",
			       FRAMETREE_MAX_NODES);
	return ret ? err_set(e, ENOMEM, "out of memory for the call tree") : 0;
}

/*
 * Compares by text, then DSO and kind, so that the order does not depend on the order of the input.
 */
static int compare_nodes(const void *a, const void *b, void *ctx)
{
	const struct frametree *t = ctx;
	const struct frametree_name *x = &t->name[t->node[*(const uint32_t *)a].name];
	const struct frametree_name *y = &t->name[t->node[*(const uint32_t *)b].name];
	int c = strcmp(x->text, y->text);

	c = c ? c : strcmp(x->dso, y->dso);
	return c ? c : (int)x->kind - (int)y->kind;
}

static void order_children(struct frametree *t, uint32_t parent, uint32_t *list)
{
	struct frametree_node *p = &t->node[parent];
	size_t n = 0;

	for (uint32_t c = p->child; c != FRAMETREE_NONE; c = t->node[c].next)
		list[n++] = c;
	if (!n)
		return;
	qsort_r(list, n, sizeof(*list), compare_nodes, t);
	p->child = list[0];
	for (size_t i = 0; i < n; i++) {
		t->node[list[i]].next = i + 1 < n ? list[i + 1] : FRAMETREE_NONE;
	}
}

int frametree_finish(struct frametree *t, struct err *e)
{
	cleanup_free uint32_t *list = calloc(t->nnodes, sizeof(*list));

	if (!list)
		return err_set(e, ENOMEM, "out of memory for the call tree");
	for (uint32_t i = 0; i < t->nnodes; i++)
		order_children(t, i, list);
	return 0;
}

uint8_t frametree_kind(const struct frametree *t, uint32_t node)
{
	const struct frametree_node *n = &t->node[node];
	uint8_t kind = t->name[n->name].kind;

	if (kind != FRAMETREE_KIND_TASK && n->idle && n->idle == n->weight[FRAMETREE_SHOWN])
		return FRAMETREE_KIND_IDLE;
	return kind;
}

double frametree_delta(const struct frametree *t, uint32_t node)
{
	double share[FRAMETREE_SLOTS];

	for (unsigned int s = 0; s < FRAMETREE_SLOTS; s++) {
		uint64_t all = t->node[0].weight[s];

		share[s] = all ? (double)t->node[node].weight[s] / (double)all : 0;
	}
	return share[FRAMETREE_SHOWN] - share[FRAMETREE_BASE];
}

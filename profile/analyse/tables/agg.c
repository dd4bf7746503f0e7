/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/tables/agg.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "profile/format/names/chain.h"
#include "base/table.h"
#include "base/texts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One distinct stack with the sums of its samples. */
struct stack_sum {
	struct chain chain;
	uint64_t weight, samples;
	double squares; /* sum of the samples' squared weights */
	/* 0 for facts that no key needs. */
	uint32_t comm, pid, tid, cpu;
	uint64_t code_page, data_page;
};

/*
 * Maximum number of distinct stacks stored; beyond it the older half is added up. The younger ones
 * wait for mappings that are reported after their samples.
 */
#define MAX_STACKS (1u << 20)

struct agg_private {
	struct agg_config config;
	unsigned int need; /* enum agg_need of all keys */
	struct selection_use selection;
	struct names *names;
	struct tasks *tasks;
	struct texts lines;	    /* texts of rows */
	struct table stacks;	    /* struct stack_sum, by age */
	uint64_t stamp;		    /* number of the stack that was added up last */
	struct table rows;	    /* struct agg_row */
	struct table funcs;	    /* struct agg_func */
	struct agg_stack *kept;	    /* all stacks, with keep_stacks */
	uint32_t *func_of, *row_of; /* one entry for each of their frames */
	size_t nframes, func_cap, row_cap;
};

/* -- stacks ---------------------------------------------------------------------------- */

static void agg_describe(struct agg_private *v, const struct perfdata_record *r,
			 struct stack_sum *s)
{
	*s = (struct stack_sum){ .chain = chain_of(r, v->names) };
	if (v->need & AGG_NEED_COMM)
		s->comm = tasks_name(v->tasks, r->tid);
	if (v->need & AGG_NEED_PID)
		s->pid = r->pid;
	if (v->need & AGG_NEED_TID)
		s->tid = r->tid;
	if (v->need & AGG_NEED_CPU)
		s->cpu = r->cpu;
	if (v->need & AGG_NEED_CODE_PAGE)
		s->code_page = r->sample.code_page;
	if (v->need & AGG_NEED_DATA_PAGE)
		s->data_page = r->sample.data_page;
}

static uint64_t hash_stack(const struct stack_sum *s)
{
	uint64_t h = table_mix(s->comm ^ (uint64_t)s->cpu << 32, s->pid ^ (uint64_t)s->tid << 32);

	return chain_hash(&s->chain, h ^ s->code_page << 24 ^ s->data_page << 40);
}

static bool equal_stack(const void *a, const void *b, const void *ctx)
{
	const struct stack_sum *x = a, *y = b;

	(void)ctx;
	return x->comm == y->comm && x->pid == y->pid && x->tid == y->tid && x->cpu == y->cpu &&
	       x->code_page == y->code_page && x->data_page == y->data_page &&
	       chain_equal(&x->chain, &y->chain);
}

/* -- counting --------------------------------------------------------------------------- */

static bool equal_row(const void *a, const void *b, const void *ctx)
{
	const struct agg_config *c = ctx;

	return !memcmp(((const struct agg_row *)a)->value, ((const struct agg_row *)b)->value,
		       c->nkeys * sizeof(struct agg_value));
}

/* A function is identified by its symbol, code without one by DSO and address. */
static bool equal_func(const void *a, const void *b, const void *ctx)
{
	const struct agg_func *x = a, *y = b;

	(void)ctx;
	return x->symbol == y->symbol && (x->symbol || (x->addr == y->addr && x->dso == y->dso));
}

int agg_create(struct agg **out, const struct agg_config *config, struct names *n,
	       struct tasks *tasks, struct err *e)
{
	struct agg *a = calloc(1, sizeof(*a));

	if (a)
		a->priv = calloc(1, sizeof(*a->priv));
	if (!a || !a->priv) {
		free(a);
		return err_nomem(e);
	}
	a->priv->stacks = TABLE_OF(struct stack_sum, equal_stack);
	a->priv->rows = TABLE_OF(struct agg_row, equal_row);
	a->priv->rows.ctx = &a->priv->config;
	a->priv->funcs = TABLE_OF(struct agg_func, equal_func);
	a->priv->config = *config;
	a->priv->names = n;
	a->priv->tasks = tasks;
	for (unsigned int i = 0; i < config->nkeys; i++)
		a->priv->need |= config->key[i]->need;
	selection_use_init(&a->priv->selection, config->selection, n, tasks, config->display);
	*out = a;
	return 0;
}

void agg_destroy(struct agg *a)
{
	if (!a)
		return;
	table_deinit(&a->priv->stacks);
	table_deinit(&a->priv->rows);
	texts_deinit(&a->priv->lines);
	table_deinit(&a->priv->funcs);
	selection_use_deinit(&a->priv->selection);
	free(a->priv->kept);
	free(a->priv->func_of);
	free(a->priv->row_of);
	free(a->priv);
	free(a);
}

/* -- naming ------------------------------------------------------------------------------ */

/* Finds the row of f's group, or adds it. The pointer is valid until the next call. */
static int find_row(struct agg_private *v, const struct agg_frame *f, struct agg_row **out)
{
	struct agg_row like = { .frame = *f, .id = (uint32_t)v->rows.n };
	uint64_t hash = v->config.nkeys;
	uint32_t index;
	bool fresh;

	for (unsigned int k = 0; k < v->config.nkeys; k++) {
		like.value[k] = v->config.key[k]->value(f);
		hash = table_mix(hash ^ like.value[k].a, like.value[k].b + k);
	}
	if (table_add(&v->rows, hash, &like, &index, &fresh) < 0)
		return -ENOMEM;
	*out = (struct agg_row *)v->rows.item + index;
	if (fresh && f->symbol)
		(*out)->frame.name =
			demangle_shown(v->config.display, f->symbol, f->mode != AGG_USER);
	return 0;
}

/*
 * Stores the line of the instruction itself; where calls were inlined, the frame's own line is that
 * of the innermost call. Kernel frames only, because srcline has only the kernel's lines.
 */
static int line_of(struct agg_private *v, const struct name *name, uint64_t addr, const char **out)
{
	struct srcline_result at = { 0 };
	cleanup_free char *text = NULL;

	*out = NULL;
	if (v->config.lines && (v->need & AGG_NEED_LINE) && names_to_first_kernel(name, &addr))
		at = srcline_of(v->config.lines, addr);
	if (!at.n || !at.frame[0].line)
		return 0;
	if (asprintf(&text, "%s:%u", at.frame[0].file ? at.frame[0].file : "??", at.frame[0].line) <
	    0) {
		text = NULL;
		return -ENOMEM;
	}
	*out = texts_add(&v->lines, text);
	return *out ? 0 : -ENOMEM;
}

static int keep_frame(struct agg_private *v, uint32_t func, uint32_t row)
{
	if (ARRAY_ROOM(v->func_of, v->nframes, v->func_cap) ||
	    ARRAY_ROOM(v->row_of, v->nframes, v->row_cap))
		return -ENOMEM;
	v->func_of[v->nframes] = func;
	v->row_of[v->nframes++] = row;
	return 0;
}

/* Stores the number of the function at f. */
static int find_func(struct agg_private *v, const struct agg_frame *f, uint32_t *out)
{
	const struct agg_func like = { .symbol = f->symbol, .dso = f->dso, .addr = f->addr };
	uint64_t hash = f->symbol ? table_mix((uintptr_t)f->symbol, 0)
				  : table_mix(f->addr, (uintptr_t)f->dso);
	struct agg_func *n;
	bool fresh;

	if (table_add(&v->funcs, hash, &like, out, &fresh))
		return -ENOMEM;
	if (!fresh)
		return 0;
	n = (struct agg_func *)v->funcs.item + *out;
	if (f->symbol)
		n->name = demangle_shown(v->config.display, f->symbol, f->mode != AGG_USER);
	return 0;
}

/* A walk over the frames of a stack that count, with their names. */
struct stack_walk {
	struct agg_private *v;
	const struct stack_sum *s;
	struct perfdata_walk walk;
	uint32_t left;
	struct perfdata_frame f;
	struct name name;
	struct agg_frame frame;
	uint32_t func;	   /* set with keep_stacks */
	unsigned int bits; /* enum selection_bit */
};

static void stack_begin(struct stack_walk *w, struct agg_private *v, const struct stack_sum *s)
{
	*w = (struct stack_walk){
		.v = v,
		.s = s,
		.left = v->config.max_stack ? v->config.max_stack : UINT32_MAX,
		.frame = { .comm = s->comm,
			   .pid = s->pid,
			   .tid = s->tid,
			   .cpu = s->cpu,
			   .where = chain_where(&s->chain),
			   .code_page = s->code_page,
			   .data_page = s->data_page },
	};
	chain_walk_begin(&w->walk, &s->chain);
}

static enum agg_mode mode_of(const struct chain *c, const struct perfdata_frame *f)
{
	if (f->owner != PERFDATA_RECORDED)
		return (enum agg_mode)(AGG_GUEST_KERNEL + f->owner - PERFDATA_GUEST_KERNEL);
	return c->idle ? AGG_IDLE : f->kernel ? AGG_KERNEL : AGG_USER;
}

/* Returns 1 for a frame, 0 at the end, or -ENOMEM. */
static int stack_next(struct stack_walk *w)
{
	const struct agg_config *c = &w->v->config;
	const struct name *name = &w->name;
	uint64_t addr;

	if (!w->left--)
		return 0;
	do {
		if (!perfdata_walk_next(&w->walk, &w->f))
			return 0;
	} while (!selection_frame(c->selection, &w->f));
	addr = names_lookup_frame(w->v->names, w->s->chain.view, &w->f, c->exact, &w->name);
	w->frame.symbol = name->symbol;
	/* As in perf, code without a name is identified by its place in its file. */
	w->frame.addr = !name->symbol && name->program != NAMES_NONE ? addr + name->to_file : addr;
	w->frame.dso = name->dso;
	w->frame.mode = mode_of(&w->s->chain, &w->f);
	if (selection_function(&w->v->selection, name, addr, w->f.kernel, &w->bits) < 0 ||
	    (c->keep_stacks && find_func(w->v, &w->frame, &w->func) < 0))
		return -ENOMEM;
	return 1;
}

/* Returns 1 if the selection's parent is a function of the stack, 0 if not, or -ENOMEM. */
static int has_parent(struct agg_private *v, const struct stack_sum *s)
{
	struct stack_walk w;
	int got;

	stack_begin(&w, v, s);
	while ((got = stack_next(&w)) > 0)
		if (w.bits & SELECTION_PARENT)
			return 1;
	return got;
}

static void count_row(struct agg_row *row, const struct stack_sum *s, bool innermost,
		      uint64_t stamp)
{
	if (innermost) {
		row->self += s->weight;
		row->self_samples += s->samples;
	}
	if (row->stamp != stamp) {
		row->stamp = stamp;
		row->children += s->weight;
		row->children_samples += s->samples;
	}
}

static int add_frame(struct agg *a, struct stack_walk *w, uint64_t stamp)
{
	struct agg_private *v = a->priv;
	const struct agg_config *c = &v->config;
	uint32_t id = AGG_NO_ROW;
	struct agg_row *row;

	if (w->f.innermost)
		a->mode_weight[w->frame.mode] += w->s->weight;
	if (w->bits & SELECTION_CHOSEN) {
		w->frame.line = NULL;
		if ((w->f.kernel && line_of(v, &w->name, w->frame.addr, &w->frame.line) < 0) ||
		    find_row(v, &w->frame, &row) < 0)
			return -ENOMEM;
		count_row(row, w->s, w->f.innermost, stamp);
		id = row->id;
	}
	return c->keep_stacks ? keep_frame(v, w->func, id) : 0;
}

static int add_stack(struct agg *a, const struct stack_sum *s, uint64_t stamp)
{
	struct agg_private *v = a->priv;
	size_t first = v->nframes;
	struct stack_walk w;
	int got;

	if (v->config.selection && v->config.selection->parent && (got = has_parent(v, s)) <= 0) {
		a->samples -= s->samples;
		a->weight -= s->weight;
		return got;
	}
	a->weight_squares += s->squares;
	stack_begin(&w, v, s);
	while ((got = stack_next(&w)) > 0)
		if (add_frame(a, &w, stamp) < 0)
			return -ENOMEM;
	if (v->config.keep_stacks)
		v->kept[a->nkept++] = (struct agg_stack){
			.weight = s->weight,
			.first = first,
			.n = (uint32_t)(v->nframes - first),
		};
	return got;
}

/* Adds up the stacks [0, n), which are not needed again. */
static int add_first(struct agg *a, size_t n, struct err *e)
{
	struct agg_private *v = a->priv;

	for (size_t i = 0; i < n; i++)
		if (add_stack(a, (struct stack_sum *)v->stacks.item + i, ++v->stamp) < 0)
			return err_set(e, ENOMEM, "out of memory after %zu rows", v->rows.n);
	return 0;
}

static int add_older(struct agg *a, struct err *e)
{
	struct agg_private *v = a->priv;
	struct table old = v->stacks, fresh = TABLE_OF(struct stack_sum, equal_stack);
	size_t half = old.n / 2;
	int ret = add_first(a, half, e);

	for (size_t i = half; i < old.n && !ret; i++) {
		uint32_t index;
		bool new;

		if (table_add(&fresh, old.hash[i], (struct stack_sum *)old.item + i, &index, &new))
			ret = err_set(e, ENOMEM, "out of memory for %zu stacks", old.n);
	}
	table_deinit(&v->stacks);
	v->stacks = fresh;
	return ret;
}

int agg_add(struct agg *a, const struct perfdata_record *r, struct err *e)
{
	struct agg_private *v = a->priv;
	struct stack_sum *s, like;
	uint32_t index;
	bool fresh;

	if (!selection_sample(&v->selection, r))
		return 0;
	agg_describe(v, r, &like);
	if (v->stacks.n >= MAX_STACKS && !v->config.keep_stacks) {
		int ret = add_older(a, e);

		if (ret)
			return ret;
	}
	if (table_add(&v->stacks, hash_stack(&like), &like, &index, &fresh) < 0)
		return err_set(e, ENOMEM, "out of memory after %zu different stacks", v->stacks.n);
	s = (struct stack_sum *)v->stacks.item + index;
	s->weight += r->sample.period;
	s->samples++;
	s->squares += (double)r->sample.period * (double)r->sample.period;
	a->samples++;
	a->weight += r->sample.period;
	a->nstacks = v->stamp + v->stacks.n;
	return 0;
}

/* -- order ------------------------------------------------------------------------------- */

static int compare_pair(uint64_t x1, uint64_t y1, uint64_t x2, uint64_t y2)
{
	if (x1 != y1)
		return x1 > y1 ? -1 : 1;
	return x2 > y2 ? -1 : x2 < y2;
}

struct row_order {
	const struct agg_private *v;
	enum agg_order by;
};

static int compare_rows(const void *a, const void *b, void *ctx)
{
	const struct agg_row *x = a, *y = b;
	const struct row_order *o = ctx;
	int d = o->by == AGG_BY_SELF ? compare_pair(x->self, y->self, x->children, y->children)
				     : compare_pair(x->children, y->children, x->self, y->self);

	for (unsigned int k = 0; !d && k < o->v->config.nkeys; k++)
		d = o->v->config.key[k]->compare(o->v->tasks, &x->frame, &y->frame);
	return d;
}

int agg_finish(struct agg *a, enum agg_order by, struct err *e)
{
	struct agg_private *v = a->priv;
	struct row_order order = { .v = v, .by = by };
	int ret;

	if (v->config.keep_stacks) {
		v->kept = calloc(v->stacks.n ? v->stacks.n : 1, sizeof(*v->kept));
		if (!v->kept)
			return err_set(e, ENOMEM, "out of memory for %zu stacks", v->stacks.n);
	}
	ret = add_first(a, v->stacks.n, e);
	if (ret)
		return ret;
	ret = names_read_error(v->names, e);
	ret = ret ? ret : selection_missed(&v->selection, e);
	if (ret)
		return ret;
	a->row = v->rows.item;
	a->nrows = v->rows.n;
	if (a->nrows)
		qsort_r(a->row, a->nrows, sizeof(*a->row), compare_rows, &order);
	a->stack = v->kept;
	a->func_of = v->func_of;
	a->row_of = v->row_of;
	a->func = v->funcs.item;
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/tables/agg.h"

#include "base/cleanup.h"
#include "profile/tables/agg_func.h"
#include "base/texts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One distinct stack: the first sample that had it, and the sums. */
struct stack_sum {
	uint64_t hash;
	uint64_t weight, samples;
	double squares; /* of the samples' weights */
	uint64_t ip;
	const uint8_t *chain;
	uint32_t nr;
	bool kernel, idle;
	struct names_view view;
	/* Of what no key needs: 0. */
	uint32_t comm, pid, tid, cpu;
	uint64_t code_page, data_page;
};

struct agg_private {
	struct agg_config config;
	unsigned int need; /* enum agg_need of all keys */
	bool filtered;	   /* samples have to pass something */
	struct names *names;
	struct tasks *tasks;
	struct texts lines; /* of rows */
	struct stack_sum *stack;
	size_t nstacks, stack_cap;
	uint32_t *slot; /* index + 1 into stack; 0 is free */
	size_t slots;
	uint32_t *row_slot; /* likewise into rows */
	uint64_t *row_hash; /* of each row */
	size_t row_slots, row_cap;
	bool need_funcs;
	struct agg_funcs funcs;
	struct agg_stack *kept;	    /* nstacks, with keep_stacks */
	uint32_t *func_of, *row_of; /* of their frames */
	size_t nframes, frame_cap;
};

/* -- hashing --------------------------------------------------------------------------- */

static uint64_t mix(uint64_t a, uint64_t b)
{
	unsigned __int128 m =
		(unsigned __int128)(a ^ 0x9e3779b97f4a7c15u) * (b ^ 0xc2b2ae3d27d4eb4fu);

	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

/* What tells stacks apart, but for the chain. */
static void describe(struct agg_private *v, const struct perfdata_record *r, struct stack_sum *s)
{
	*s = (struct stack_sum){
		/* hash: the caller's */
		.ip = r->sample.ip,  .chain = r->sample.chain, .nr = r->sample.nr,
		.kernel = r->kernel, .idle = r->idle,	       .view = names_view(v->names, r->pid),
	};
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
	uint64_t h = mix(s->ip, (uint64_t)s->view.user << 2 | s->idle << 1 | s->kernel);
	const uint8_t *p = s->chain;
	uint32_t i = 0;

	h = mix(h ^ s->comm ^ (uint64_t)s->view.kernel << 32, s->pid ^ (uint64_t)s->tid << 32);
	h ^= s->cpu ^ s->code_page << 24 ^ s->data_page << 40;
	for (; i + 2 <= s->nr; i += 2) {
		uint64_t w[2];

		memcpy(w, p + 8 * (size_t)i, 16);
		h = mix(h ^ w[0], w[1] + i);
	}
	if (i < s->nr) {
		uint64_t w;

		memcpy(&w, p + 8 * (size_t)i, 8);
		h = mix(h ^ w, i);
	}
	return mix(h, s->nr);
}

static bool same_stack(const struct stack_sum *x, const struct stack_sum *y)
{
	return x->hash == y->hash && x->nr == y->nr && x->kernel == y->kernel && x->ip == y->ip &&
	       x->idle == y->idle && x->view.user == y->view.user &&
	       x->view.kernel == y->view.kernel && x->comm == y->comm && x->pid == y->pid &&
	       x->tid == y->tid && x->cpu == y->cpu && x->code_page == y->code_page &&
	       x->data_page == y->data_page &&
	       (!x->nr || !memcmp(x->chain, y->chain, 8 * (size_t)x->nr));
}

/* Double a slot table; hash_of gives the hash of entry i. */
static int grow_slots(uint32_t **slot, size_t *slots, size_t n,
		      uint64_t (*hash_of)(const void *base, size_t i), const void *base)
{
	size_t want = *slots ? *slots * 2 : 4096;
	uint32_t *grown = calloc(want, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		size_t at = hash_of(base, i) & (want - 1);

		while (grown[at])
			at = (at + 1) & (want - 1);
		grown[at] = (uint32_t)(i + 1);
	}
	free(*slot);
	*slot = grown;
	*slots = want;
	return 0;
}

static uint64_t stack_hash_of(const void *base, size_t i)
{
	return ((const struct stack_sum *)base)[i].hash;
}

static uint64_t row_hash_of(const void *base, size_t i)
{
	return ((const uint64_t *)base)[i];
}

/* -- filters --------------------------------------------------------------------------- */

static bool passes_number(const struct agg_numbers *l, uint32_t v)
{
	for (unsigned int i = 0; i < l->n; i++)
		if (v >= l->range[i].from && v <= l->range[i].to)
			return true;
	return l->n == 0;
}

static bool passes_text(const struct agg_texts *l, const char *s)
{
	for (unsigned int i = 0; i < l->n; i++)
		if (!strcmp(l->text[i], s))
			return true;
	return l->n == 0;
}

static bool passes_dso(const struct agg_texts *l, const char *path)
{
	const char *base = strrchr(path, '/');

	return passes_text(l, path) || (base && passes_text(l, base + 1));
}

static bool passes(const struct agg_private *v, const struct perfdata_record *r)
{
	const struct agg_config *c = &v->config;

	if (c->to_ns && (r->time_ns < c->from_ns || r->time_ns > c->to_ns))
		return false;
	/* Frames of the kernel come before those of programs. */
	if (c->kernel_only && !r->kernel)
		return false;
	return passes_number(&c->cpu, r->cpu) && passes_number(&c->pid, r->pid) &&
	       passes_number(&c->tid, r->tid) &&
	       (!c->comm.n ||
		passes_text(&c->comm, tasks_text(v->tasks, tasks_name(v->tasks, r->tid))));
}

/* -- counting --------------------------------------------------------------------------- */

int agg_create(struct agg **out, const struct agg_config *config, struct names *n,
	       struct tasks *tasks, struct err *e)
{
	struct agg *a = calloc(1, sizeof(*a));

	if (a)
		a->priv = calloc(1, sizeof(*a->priv));
	if (!a || !a->priv) {
		free(a);
		return err_set(e, ENOMEM, "out of memory");
	}
	a->priv->config = *config;
	a->priv->names = n;
	a->priv->tasks = tasks;
	for (unsigned int i = 0; i < config->nkeys; i++)
		a->priv->need |= config->key[i]->need;
	a->priv->filtered = config->cpu.n || config->pid.n || config->tid.n || config->comm.n ||
			    config->to_ns || config->kernel_only;
	a->priv->need_funcs = config->symbol || config->parent || config->keep_stacks;
	*out = a;
	return 0;
}

void agg_destroy(struct agg *a)
{
	if (!a)
		return;
	free(a->priv->stack);
	free(a->priv->slot);
	free(a->priv->row_slot);
	free(a->priv->row_hash);
	texts_deinit(&a->priv->lines);
	agg_funcs_deinit(&a->priv->funcs);
	free(a->priv->kept);
	free(a->priv->func_of);
	free(a->priv->row_of);
	free(a->priv);
	free(a->row);
	free(a);
}

int agg_add(struct agg *a, const struct perfdata_record *r, struct err *e)
{
	struct agg_private *v = a->priv;
	struct stack_sum *s, fresh;
	uint64_t hash;
	size_t at;

	if (v->filtered && !passes(v, r))
		return 0;
	describe(v, r, &fresh);
	hash = fresh.hash = hash_stack(&fresh);
	if (v->nstacks * 2 >= v->slots &&
	    grow_slots(&v->slot, &v->slots, v->nstacks, stack_hash_of, v->stack) < 0)
		return err_set(e, ENOMEM, "out of memory after %zu different stacks", v->nstacks);
	for (at = hash & (v->slots - 1); v->slot[at]; at = (at + 1) & (v->slots - 1)) {
		s = &v->stack[v->slot[at] - 1];
		if (same_stack(s, &fresh))
			goto found;
	}
	if (v->nstacks == v->stack_cap) {
		size_t cap = v->stack_cap ? v->stack_cap * 2 : 1024;
		struct stack_sum *grown =
			cap < UINT32_MAX ? reallocarray(v->stack, cap, sizeof(*grown)) : NULL;

		if (!grown)
			return err_set(e, ENOMEM, "out of memory after %zu different stacks",
				       v->nstacks);
		v->stack = grown;
		v->stack_cap = cap;
	}
	s = &v->stack[v->nstacks++];
	*s = fresh;
	v->slot[at] = (uint32_t)v->nstacks;
found:
	s->weight += r->sample.period;
	s->samples++;
	s->squares += (double)r->sample.period * (double)r->sample.period;
	a->samples++;
	a->weight += r->sample.period;
	a->nstacks = v->nstacks;
	return 0;
}

/* -- naming ------------------------------------------------------------------------------ */

static int grow_rows(struct agg *a)
{
	struct agg_private *v = a->priv;
	size_t cap = v->row_cap ? v->row_cap * 2 : 1024;
	struct agg_row *row = cap < UINT32_MAX ? reallocarray(a->row, cap, sizeof(*row)) : NULL;
	uint64_t *hash;

	if (!row)
		return -ENOMEM;
	a->row = row;
	hash = reallocarray(v->row_hash, cap, sizeof(*hash));
	if (!hash)
		return -ENOMEM;
	v->row_hash = hash;
	v->row_cap = cap;
	return 0;
}

/* The row of the group that f belongs to. */
static int find_row(struct agg *a, const struct agg_frame *f, struct agg_row **out)
{
	struct agg_private *v = a->priv;
	unsigned int nkeys = v->config.nkeys;
	struct agg_value value[AGG_MAX_KEYS];
	uint64_t hash = nkeys;
	struct agg_row *row;
	size_t at;

	for (unsigned int k = 0; k < nkeys; k++) {
		value[k] = v->config.key[k]->value(f);
		hash = mix(hash ^ value[k].a, value[k].b + k);
	}
	if (a->nrows * 2 >= v->row_slots &&
	    grow_slots(&v->row_slot, &v->row_slots, a->nrows, row_hash_of, v->row_hash) < 0)
		return -ENOMEM;
	at = hash & (v->row_slots - 1);
	for (; v->row_slot[at]; at = (at + 1) & (v->row_slots - 1)) {
		row = &a->row[v->row_slot[at] - 1];
		if (v->row_hash[v->row_slot[at] - 1] == hash &&
		    !memcmp(row->value, value, nkeys * sizeof(value[0]))) {
			*out = row;
			return 0;
		}
	}
	if (a->nrows == v->row_cap && grow_rows(a) < 0)
		return -ENOMEM;
	v->row_hash[a->nrows] = hash;
	row = &a->row[a->nrows++];
	*row = (struct agg_row){ .frame = *f, .id = (uint32_t)a->nrows - 1 };
	if (f->symbol)
		row->frame.name = display_name(v->config.display, f->symbol, f->mode != AGG_USER);
	memcpy(row->value, value, nkeys * sizeof(value[0]));
	v->row_slot[at] = (uint32_t)a->nrows;
	*out = row;
	return 0;
}

/*
 * Of the instruction itself, where calls were inlined: the frame's own line is that of
 * the innermost call. Kernel frames only, as srcline has the kernel's.
 */
static int line_of(struct agg_private *v, const struct perfdata_frame *f, uint64_t addr,
		   const char **out)
{
	struct srcline_result at = { 0 };
	cleanup_free char *text = NULL;

	*out = NULL;
	if (v->config.lines && (v->need & AGG_NEED_LINE) && f->kernel)
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
	if (v->nframes == v->frame_cap) {
		size_t cap = v->frame_cap ? v->frame_cap * 2 : 8192;
		uint32_t *f = reallocarray(v->func_of, cap, sizeof(*f)), *r;

		if (!f)
			return -ENOMEM;
		v->func_of = f;
		r = reallocarray(v->row_of, cap, sizeof(*r));
		if (!r)
			return -ENOMEM;
		v->row_of = r;
		v->frame_cap = cap;
	}
	v->func_of[v->nframes] = func;
	v->row_of[v->nframes++] = row;
	return 0;
}

/* The frames of a stack that count, with their names. */
struct stack_walk {
	struct agg_private *v;
	const struct stack_sum *s;
	struct perfdata_walk walk;
	uint32_t left;
	struct perfdata_frame f;
	struct agg_frame frame;
	uint32_t func; /* when functions are needed */
};

static void stack_begin(struct stack_walk *w, struct agg_private *v, const struct stack_sum *s)
{
	const struct perfdata_record r = {
		.kind = PERFDATA_SAMPLE,
		.kernel = s->kernel,
		.sample = { .ip = s->ip, .chain = s->chain, .nr = s->nr },
	};

	*w = (struct stack_walk){
		.v = v,
		.s = s,
		.left = v->config.max_stack ? v->config.max_stack : UINT32_MAX,
		.frame = { .comm = s->comm,
			   .pid = s->pid,
			   .tid = s->tid,
			   .cpu = s->cpu,
			   .code_page = s->code_page,
			   .data_page = s->data_page },
	};
	perfdata_walk_begin(&w->walk, &r);
}

/* 1: there is a frame; 0: there are no more; -ENOMEM. */
static int stack_next(struct stack_walk *w)
{
	const struct agg_config *c = &w->v->config;
	struct name name;
	uint64_t addr;

	if (!w->left-- || !perfdata_walk_next(&w->walk, &w->f) || (c->kernel_only && !w->f.kernel))
		return 0;
	addr = w->f.innermost || c->exact || !w->f.ip ? w->f.ip : w->f.ip - 1;
	names_lookup_in(w->v->names, w->s->view, w->f.kernel, addr, &name);
	w->frame.symbol = name.symbol;
	w->frame.addr = addr;
	w->frame.dso = name.dso;
	w->frame.mode = w->s->idle ? AGG_IDLE : w->f.kernel ? AGG_KERNEL : AGG_USER;
	if (w->v->need_funcs && agg_funcs_add(&w->v->funcs, c, &w->frame, &w->func) < 0)
		return -ENOMEM;
	return 1;
}

/* 1: config.parent is in the stack. */
static int has_parent(struct agg_private *v, const struct stack_sum *s)
{
	struct stack_walk w;
	int got;

	stack_begin(&w, v, s);
	while ((got = stack_next(&w)) > 0)
		if (v->funcs.func[w.func].is_parent)
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
	if ((!c->dso.n || passes_dso(&c->dso, w->frame.dso)) &&
	    (!c->symbol || v->funcs.func[w->func].is_symbol)) {
		if (line_of(v, &w->f, w->frame.addr, &w->frame.line) < 0 ||
		    find_row(a, &w->frame, &row) < 0)
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

	if (v->config.parent && (got = has_parent(v, s)) <= 0) {
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

/* -- order ------------------------------------------------------------------------------- */

static int compare_pair(uint64_t x1, uint64_t y1, uint64_t x2, uint64_t y2)
{
	if (x1 != y1)
		return x1 > y1 ? -1 : 1;
	return x2 > y2 ? -1 : x2 < y2;
}

struct order {
	const struct agg_private *v;
	bool by_self;
};

static int compare_rows(const void *a, const void *b, void *ctx)
{
	const struct agg_row *x = a, *y = b;
	const struct order *o = ctx;
	int d = o->by_self ? compare_pair(x->self, y->self, x->children, y->children)
			   : compare_pair(x->children, y->children, x->self, y->self);

	for (unsigned int k = 0; !d && k < o->v->config.nkeys; k++)
		d = o->v->config.key[k]->compare(o->v->tasks, &x->frame, &y->frame);
	return d;
}

int agg_finish(struct agg *a, bool by_self, struct err *e)
{
	struct agg_private *v = a->priv;
	struct order order = { .v = v, .by_self = by_self };

	if (v->config.keep_stacks) {
		v->kept = calloc(v->nstacks ? v->nstacks : 1, sizeof(*v->kept));
		if (!v->kept)
			return err_set(e, ENOMEM, "out of memory for %zu stacks", v->nstacks);
	}
	for (size_t i = 0; i < v->nstacks; i++)
		if (add_stack(a, &v->stack[i], i + 1) < 0)
			return err_set(e, ENOMEM, "out of memory after %zu rows", a->nrows);
	if (a->nrows)
		qsort_r(a->row, a->nrows, sizeof(*a->row), compare_rows, &order);
	a->stack = v->kept;
	a->func_of = v->func_of;
	a->row_of = v->row_of;
	a->func = v->funcs.func;
	return 0;
}

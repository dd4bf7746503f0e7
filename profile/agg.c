/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/agg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One distinct stack: the first sample that had it, and the sums. */
struct stack_sum {
	uint64_t hash;
	uint64_t weight, samples;
	uint64_t ip;
	const uint8_t *chain;
	uint32_t nr;
	uint32_t pid;
	bool kernel;
};

struct agg_private {
	bool exact;
	struct stack_sum *stack;
	size_t nstacks, stack_cap;
	uint32_t *slot; /* index + 1 into stack; 0 is free */
	size_t slots;
	uint32_t *row_slot; /* likewise into rows */
	size_t row_slots, row_cap;
};

const char *agg_mode_name(enum agg_mode mode)
{
	static const char *const name[AGG_MODES] = { "kernel", "user", "idle" };

	return mode < AGG_MODES ? name[mode] : "?";
}

/* -- hashing --------------------------------------------------------------------------- */

static uint64_t mix(uint64_t a, uint64_t b)
{
	unsigned __int128 m =
		(unsigned __int128)(a ^ 0x9e3779b97f4a7c15u) * (b ^ 0xc2b2ae3d27d4eb4fu);

	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static uint64_t hash_sample(const struct perfdata_record *r)
{
	uint64_t h = mix(r->sample.ip, (uint64_t)r->pid << 1 | r->kernel);
	const uint8_t *p = r->sample.chain;
	uint32_t i = 0;

	for (; i + 2 <= r->sample.nr; i += 2) {
		uint64_t w[2];

		memcpy(w, p + 8 * (size_t)i, 16);
		h = mix(h ^ w[0], w[1] + i);
	}
	if (i < r->sample.nr) {
		uint64_t w;

		memcpy(&w, p + 8 * (size_t)i, 8);
		h = mix(h ^ w, i);
	}
	return mix(h, r->sample.nr);
}

static bool same_stack(const struct stack_sum *s, const struct perfdata_record *r, uint64_t hash)
{
	return s->hash == hash && s->nr == r->sample.nr && s->pid == r->pid &&
	       s->kernel == r->kernel && s->ip == r->sample.ip &&
	       (!s->nr || !memcmp(s->chain, r->sample.chain, 8 * (size_t)s->nr));
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

static uint64_t row_hash(const char *dso, uint64_t addr, enum agg_mode mode)
{
	return mix(addr, (uint64_t)(uintptr_t)dso << 2 | mode);
}

static uint64_t row_hash_of(const void *base, size_t i)
{
	const struct agg_row *r = (const struct agg_row *)base + i;

	return row_hash(r->dso, r->addr, r->mode);
}

/* -- counting --------------------------------------------------------------------------- */

int agg_create(struct agg **out, bool exact, struct err *e)
{
	struct agg *a = calloc(1, sizeof(*a));

	if (a)
		a->priv = calloc(1, sizeof(*a->priv));
	if (!a || !a->priv) {
		free(a);
		return err_set(e, ENOMEM, "out of memory");
	}
	a->priv->exact = exact;
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
	free(a->priv);
	free(a->row);
	free(a);
}

int agg_add(struct agg *a, const struct perfdata_record *r, struct err *e)
{
	struct agg_private *v = a->priv;
	uint64_t hash = hash_sample(r);
	struct stack_sum *s;
	size_t at;

	if (v->nstacks * 2 >= v->slots &&
	    grow_slots(&v->slot, &v->slots, v->nstacks, stack_hash_of, v->stack) < 0)
		return err_set(e, ENOMEM, "out of memory after %zu different stacks", v->nstacks);
	for (at = hash & (v->slots - 1); v->slot[at]; at = (at + 1) & (v->slots - 1)) {
		s = &v->stack[v->slot[at] - 1];
		if (same_stack(s, r, hash))
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
	*s = (struct stack_sum){
		.hash = hash,
		.ip = r->sample.ip,
		.chain = r->sample.chain,
		.nr = r->sample.nr,
		.pid = r->pid,
		.kernel = r->kernel,
	};
	v->slot[at] = (uint32_t)v->nstacks;
found:
	s->weight += r->sample.period;
	s->samples++;
	a->samples++;
	a->weight += r->sample.period;
	a->nstacks = v->nstacks;
	return 0;
}

/* -- naming ------------------------------------------------------------------------------ */

static int find_row(struct agg *a, const struct name *name, uint64_t addr, enum agg_mode mode,
		    struct agg_row **out)
{
	struct agg_private *v = a->priv;
	uint64_t key = name->symbol ? name->symbol->addr : addr;
	struct agg_row *row;
	size_t at;

	if (a->nrows * 2 >= v->row_slots &&
	    grow_slots(&v->row_slot, &v->row_slots, a->nrows, row_hash_of, a->row) < 0)
		return -ENOMEM;
	at = row_hash(name->dso, key, mode) & (v->row_slots - 1);
	for (; v->row_slot[at]; at = (at + 1) & (v->row_slots - 1)) {
		row = &a->row[v->row_slot[at] - 1];
		if (row->addr == key && row->dso == name->dso && row->mode == mode &&
		    row->symbol == name->symbol) {
			*out = row;
			return 0;
		}
	}
	if (a->nrows == v->row_cap) {
		size_t cap = v->row_cap ? v->row_cap * 2 : 1024;

		row = cap < UINT32_MAX ? reallocarray(a->row, cap, sizeof(*row)) : NULL;
		if (!row)
			return -ENOMEM;
		a->row = row;
		v->row_cap = cap;
	}
	row = &a->row[a->nrows++];
	*row = (struct agg_row){
		.symbol = name->symbol, .addr = key, .dso = name->dso, .mode = mode
	};
	v->row_slot[at] = (uint32_t)a->nrows;
	*out = row;
	return 0;
}

static int add_stack(struct agg *a, struct names *n, const struct stack_sum *s, uint64_t stamp)
{
	struct perfdata_record r = {
		.kind = PERFDATA_SAMPLE,
		.kernel = s->kernel,
		.pid = s->pid,
		.sample = { .ip = s->ip, .chain = s->chain, .nr = s->nr },
	};
	struct perfdata_walk walk;
	struct perfdata_frame f;

	perfdata_walk_begin(&walk, &r);
	while (perfdata_walk_next(&walk, &f)) {
		uint64_t addr = f.innermost || a->priv->exact || !f.ip ? f.ip : f.ip - 1;
		enum agg_mode mode = s->pid == 0 ? AGG_IDLE : f.kernel ? AGG_KERNEL : AGG_USER;
		struct agg_row *row;
		struct name name;

		names_lookup(n, s->pid, f.kernel, addr, &name);
		if (find_row(a, &name, addr, mode, &row) < 0)
			return -ENOMEM;
		if (f.innermost) {
			row->self += s->weight;
			row->self_samples += s->samples;
			a->mode_weight[mode] += s->weight;
		}
		if (row->stamp != stamp) {
			row->stamp = stamp;
			row->children += s->weight;
			row->children_samples += s->samples;
		}
	}
	return 0;
}

static int compare_text(const struct agg_row *x, const struct agg_row *y)
{
	int d = strcmp(x->symbol ? x->symbol->name : "", y->symbol ? y->symbol->name : "");

	if (!d)
		d = strcmp(x->dso, y->dso);
	if (!d)
		d = x->addr < y->addr ? -1 : x->addr > y->addr;
	return d ? d : (int)x->mode - (int)y->mode;
}

static int compare_pair(uint64_t x1, uint64_t y1, uint64_t x2, uint64_t y2)
{
	if (x1 != y1)
		return x1 > y1 ? -1 : 1;
	return x2 > y2 ? -1 : x2 < y2;
}

static int by_children(const void *a, const void *b)
{
	const struct agg_row *x = a, *y = b;
	int d = compare_pair(x->children, y->children, x->self, y->self);

	return d ? d : compare_text(x, y);
}

static int by_self_weight(const void *a, const void *b)
{
	const struct agg_row *x = a, *y = b;
	int d = compare_pair(x->self, y->self, x->children, y->children);

	return d ? d : compare_text(x, y);
}

int agg_finish(struct agg *a, struct names *n, bool by_self, struct err *e)
{
	struct agg_private *v = a->priv;

	for (size_t i = 0; i < v->nstacks; i++)
		if (add_stack(a, n, &v->stack[i], i + 1) < 0)
			return err_set(e, ENOMEM, "out of memory after %zu symbols", a->nrows);
	if (a->nrows)
		qsort(a->row, a->nrows, sizeof(*a->row), by_self ? by_self_weight : by_children);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/exact/calltree.h"

#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST 4096u /* initial number of slots; a power of two, as all sizes are */

static uint32_t calltree_mix(uint64_t a, uint64_t b)
{
	uint64_t h = (a ^ b * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xff51afd7ed558ccd);

	h = (h ^ h >> 32) * UINT64_C(0xc4ceb9fe1a85ec53);
	return (uint32_t)(h >> 32);
}

static uint32_t calltree_hash_node(const struct calltree_node *n)
{
	return calltree_mix((uint64_t)n->parent << 8 | n->kind, n->ret ^ n->entry << 1);
}

static uint32_t calltree_hash_count(const struct calltree_count *c)
{
	return calltree_mix(c->node, c->block);
}

int calltree_init(struct calltree *t, uint32_t max_nodes, uint32_t max_counts)
{
	*t = (struct calltree){
		.max_nodes = max_nodes,
		.max_counts = max_counts,
		.nodes_cap = FIRST / 2,
		.counts_cap = FIRST / 2,
		.node_mask = FIRST - 1,
		.count_mask = FIRST - 1,
	};
	t->node = calloc(t->nodes_cap, sizeof(*t->node));
	t->count = calloc(t->counts_cap, sizeof(*t->count));
	t->node_at = calloc(FIRST, sizeof(*t->node_at));
	t->count_at = calloc(FIRST, sizeof(*t->count_at));
	if (t->node && t->count && t->node_at && t->count_at)
		return 0;
	calltree_deinit(t);
	return -ENOMEM;
}

void calltree_deinit(struct calltree *t)
{
	free(t->node);
	free(t->count);
	free(t->node_at);
	free(t->count_at);
	*t = (struct calltree){ 0 };
}

void calltree_zero(struct calltree *t)
{
	for (uint32_t i = 0; i < t->nnodes; i++)
		t->node[i].calls = 0;
	for (uint32_t i = 0; i < t->ncounts; i++)
		t->count[i].times = 0;
	t->folded = t->lost = 0;
}

/* -- growing: twice the items, and slots that stay at least half empty ------------------------- */

static bool calltree_grow_nodes(struct calltree *t)
{
	uint32_t mask = t->node_mask * 2 + 1;
	struct calltree_node *node = realloc(t->node, (size_t)t->nodes_cap * 2 * sizeof(*node));
	uint32_t *at;

	if (!node)
		return false;
	t->node = node;
	at = calloc((size_t)mask + 1, sizeof(*at));
	if (!at)
		return false;
	for (uint32_t i = 0; i < t->nnodes; i++) {
		uint32_t slot = calltree_hash_node(&node[i]) & mask;

		while (at[slot])
			slot = (slot + 1) & mask;
		at[slot] = i + 1;
	}
	free(t->node_at);
	t->node_at = at;
	t->node_mask = mask;
	t->nodes_cap *= 2;
	return true;
}

static bool calltree_grow_counts(struct calltree *t)
{
	uint32_t mask = t->count_mask * 2 + 1;
	struct calltree_count *count =
		realloc(t->count, (size_t)t->counts_cap * 2 * sizeof(*count));
	uint32_t *at;

	if (!count)
		return false;
	t->count = count;
	at = calloc((size_t)mask + 1, sizeof(*at));
	if (!at)
		return false;
	for (uint32_t i = 0; i < t->ncounts; i++) {
		uint32_t slot = calltree_hash_count(&count[i]) & mask;

		while (at[slot])
			slot = (slot + 1) & mask;
		at[slot] = i + 1;
	}
	free(t->count_at);
	t->count_at = at;
	t->count_mask = mask;
	t->counts_cap *= 2;
	return true;
}

/* -- nodes -------------------------------------------------------------------------------------- */

/*
 * Returns the index of the node equal to *want, adding it if it is missing, or CALLTREE_NONE
 * without room.
 */
static uint32_t calltree_node_of(struct calltree *t, const struct calltree_node *want)
{
	uint32_t hash = calltree_hash_node(want), slot = hash & t->node_mask;

	for (; t->node_at[slot]; slot = (slot + 1) & t->node_mask) {
		const struct calltree_node *n = &t->node[t->node_at[slot] - 1];

		if (n->parent == want->parent && n->ret == want->ret && n->entry == want->entry &&
		    n->kind == want->kind)
			return t->node_at[slot] - 1;
	}
	if (t->nnodes >= t->max_nodes)
		return CALLTREE_NONE;
	if (t->nnodes == t->nodes_cap) {
		if (!calltree_grow_nodes(t))
			return CALLTREE_NONE;
		for (slot = hash & t->node_mask; t->node_at[slot];)
			slot = (slot + 1) & t->node_mask;
	}
	t->node[t->nnodes] = *want;
	t->node_at[slot] = ++t->nnodes;
	return t->nnodes - 1;
}

uint32_t calltree_root(struct calltree *t, enum calltree_kind kind, uint64_t space)
{
	const struct calltree_node want = {
		.parent = CALLTREE_NONE, .kind = kind, .ret = space, .entry = t->part
	};
	uint32_t at = calltree_node_of(t, &want);

	if (at != CALLTREE_NONE)
		return at;
	t->folded++;
	return t->nnodes ? 0 : CALLTREE_NONE;
}

uint32_t calltree_call(struct calltree *t, uint32_t from, uint64_t ret, uint64_t entry)
{
	struct calltree_node want = { .parent = from, .ret = ret, .entry = entry };
	uint32_t at;

	if (from == CALLTREE_NONE)
		return from;
	want.kind = t->node[from].kind;
	at = calltree_node_of(t, &want);
	if (at == CALLTREE_NONE) {
		t->folded++;
		return from;
	}
	t->node[at].calls++;
	return at;
}

uint32_t calltree_copy_chain(struct calltree *t, uint32_t node)
{
	uint32_t *chain = NULL, at = node;
	size_t n = 0, cap = 0;

	for (; at != CALLTREE_NONE; at = t->node[at].parent) {
		if (ARRAY_ROOM(chain, n, cap)) {
			free(chain);
			return node;
		}
		chain[n++] = at;
	}
	while (n-- > 0 && node != CALLTREE_NONE) {
		struct calltree_node want = t->node[chain[n]];

		want.calls = 0;
		want.parent = at;
		if (at == CALLTREE_NONE)
			want.entry = t->part;
		at = calltree_node_of(t, &want);
		if (at == CALLTREE_NONE) {
			t->folded++;
			at = node;
			break;
		}
	}
	free(chain);
	return at;
}

/* -- counts ------------------------------------------------------------------------------------- */

uint32_t calltree_count_of(struct calltree *t, uint32_t node, uint32_t block)
{
	const struct calltree_count want = { .node = node, .block = block };
	uint32_t hash = calltree_hash_count(&want), slot = hash & t->count_mask;

	for (; t->count_at[slot]; slot = (slot + 1) & t->count_mask) {
		const struct calltree_count *c = &t->count[t->count_at[slot] - 1];

		if (c->node == node && c->block == block)
			return t->count_at[slot] - 1;
	}
	if (t->ncounts >= t->max_counts || node == CALLTREE_NONE)
		return CALLTREE_NONE;
	if (t->ncounts == t->counts_cap) {
		if (!calltree_grow_counts(t))
			return CALLTREE_NONE;
		for (slot = hash & t->count_mask; t->count_at[slot];)
			slot = (slot + 1) & t->count_mask;
	}
	t->count[t->ncounts] = want;
	t->count_at[slot] = ++t->ncounts;
	return t->ncounts - 1;
}

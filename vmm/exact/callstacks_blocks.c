/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/exact/callstacks_blocks.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK 4096u /* blocks */

static uint32_t callstacks_hash(const struct callstacks_block *b)
{
	uint64_t h = (b->pc + ((uint64_t)b->insns << 48)) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(h >> 32);
}

static struct callstacks_block *callstacks_block_slot(const struct callstacks *c, uint32_t number)
{
	return &c->chunk[number / CHUNK][number % CHUNK];
}

const struct callstacks_block *callstacks_block_at(const struct callstacks *c, uint32_t number)
{
	return callstacks_block_slot(c, number);
}

static bool callstacks_equal(const struct callstacks_block *a, const struct callstacks_block *b)
{
	return a->pc == b->pc && a->end == b->end && a->insns == b->insns && a->kind == b->kind &&
	       a->has_target == b->has_target && (!a->has_target || a->target == b->target) &&
	       a->moves_sp == b->moves_sp &&
	       (!a->off || !b->off || !memcmp(a->off, b->off, a->insns * sizeof(*a->off)));
}

static bool callstacks_rehash(struct callstacks *c)
{
	uint32_t mask = c->block_mask ? c->block_mask * 2 + 1 : 2 * CHUNK - 1;
	uint32_t *at = calloc((size_t)mask + 1, sizeof(*at));

	if (!at)
		return false;
	for (uint32_t i = 0; i < c->nblocks; i++) {
		uint32_t slot = callstacks_hash(callstacks_block_slot(c, i)) & mask;

		while (at[slot])
			slot = (slot + 1) & mask;
		at[slot] = i + 1;
	}
	free(c->block_at);
	c->block_at = at;
	c->block_mask = mask;
	return true;
}

static struct callstacks_block *callstacks_add_block(struct callstacks *c,
						     const struct callstacks_block *b,
						     uint32_t slot)
{
	struct callstacks_block *out;
	uint16_t *off = NULL;

	if (c->nblocks % CHUNK == 0) {
		size_t chunk = c->nblocks / CHUNK;

		if (ARRAY_FIT_ZERO(c->chunk, chunk + 1, c->chunks_cap))
			return NULL;
		if (!c->chunk[chunk])
			c->chunk[chunk] = calloc(CHUNK, sizeof(**c->chunk));
		if (!c->chunk[chunk])
			return NULL;
	}
	if (b->off && b->insns) {
		off = malloc(b->insns * sizeof(*off));
		if (!off)
			return NULL;
		memcpy(off, b->off, b->insns * sizeof(*off));
	}
	out = callstacks_block_slot(c, (uint32_t)c->nblocks);
	*out = *b;
	out->off = off;
	out->number = (uint32_t)c->nblocks;
	out->node = out->count = CALLTREE_NONE;
	out->interrupt = out->reached = false;
	out->alias = NULL;
	c->block_at[slot] = (uint32_t)++c->nblocks;
	return out;
}

struct callstacks_block *callstacks_block(struct callstacks *c, const struct callstacks_block *b)
{
	uint32_t slot;

	if (c->nblocks * 2 >= c->block_mask && !callstacks_rehash(c))
		return NULL;
	for (slot = callstacks_hash(b) & c->block_mask; c->block_at[slot];
	     slot = (slot + 1) & c->block_mask) {
		struct callstacks_block *x = callstacks_block_slot(c, c->block_at[slot] - 1);

		if (callstacks_equal(x, b))
			return x;
	}
	return c->nblocks < CALLSTACKS_MAX_BLOCKS ? callstacks_add_block(c, b, slot) : NULL;
}

unsigned int callstacks_insn_at(const struct callstacks_block *b, uint64_t pc)
{
	unsigned int i;

	if (pc < b->pc || pc >= b->end)
		return b->insns;
	for (i = 0; i < b->insns; i++)
		if ((b->off ? b->off[i] : 0) == pc - b->pc)
			break;
	return i;
}

void callstacks_free_blocks(struct callstacks *c)
{
	for (uint32_t i = 0; i < c->nblocks; i++)
		free((void *)(uintptr_t)callstacks_block_slot(c, i)->off);
	for (size_t i = 0; i < c->chunks_cap; i++)
		free(c->chunk[i]);
	free(c->chunk);
	free(c->block_at);
}

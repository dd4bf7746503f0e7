/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/exact/callstacks_stacks.h"

#include "base/array.h"

#include <stdlib.h>

#define SLACK 0x200u /* bytes that a stack may begin above its highest seen address */

struct frame *callstacks_top(const struct shadow *s)
{
	return s->n ? &s->frame[s->n - 1] : NULL;
}

void callstacks_enter(struct callstacks *c, uint32_t stack)
{
	struct shadow *s = &c->stack[stack];

	c->now.cur = stack;
	s->used = ++c->clock;
	c->now.node = s->n ? callstacks_top(s)->node : s->base_node;
}

void callstacks_drop_below(struct shadow *s, uint64_t sp)
{
	while (s->n && s->frame[s->n - 1].sp < sp)
		s->n--;
}

static bool is_in_use(const struct callstacks *c, uint32_t stack)
{
	bool in_use = c->now.cur == stack;

	for (uint32_t i = 0; i < c->ncpus; i++)
		in_use |= i != c->on && c->turn[i].cur == stack;
	return in_use;
}

static uint32_t callstacks_new_stack(struct callstacks *c, uint64_t space, uint64_t sp)
{
	uint32_t at = (uint32_t)c->nstacks;
	struct shadow *s;

	if (c->nstacks >= CALLSTACKS_MAX_STACKS ||
	    ARRAY_ROOM(c->stack, c->nstacks, c->stacks_cap)) {
		/*
		 * The table is full or cannot grow: evict a stack. There is at least one, from
		 * callstacks_create().
		 */
		at = c->ncpus;
		for (uint32_t i = at + 1; i < c->nstacks; i++)
			if (c->stack[i].used < c->stack[at].used && !is_in_use(c, i))
				at = i;
		c->stats.evicted++;
		s = &c->stack[at];
		*s = (struct shadow){ .frame = s->frame, .cap = s->cap };
	} else {
		c->nstacks++;
		s = &c->stack[at];
		*s = (struct shadow){ 0 };
	}
	s->space = space;
	s->base = sp;
	s->base_node = c->now.node;
	s->fresh = true;
	c->stats.stacks++;
	return at;
}

/* Chooses the matching stack whose highest seen address is nearest to sp. */
uint32_t callstacks_find(struct callstacks *c, uint64_t space, uint64_t sp)
{
	uint64_t reach = space ? CALLSTACKS_REACH_USER : CALLSTACKS_REACH, best = UINT64_MAX;
	uint32_t at = 0;

	for (uint32_t i = c->ncpus; i < c->nstacks; i++) {
		const struct shadow *s = &c->stack[i];
		uint64_t far = s->base >= sp ? s->base - sp : sp - s->base + reach;

		if (s->space != space || (s->base >= sp ? far >= reach : sp - s->base > SLACK) ||
		    far >= best)
			continue;
		best = far;
		at = i;
	}
	if (!at)
		return callstacks_new_stack(c, space, sp);
	if (c->stack[at].base < sp)
		c->stack[at].base = sp;
	return at;
}

void callstacks_switch(struct callstacks *c, struct shadow *s)
{
	c->stats.switches++;
	if (!s->n)
		s->base_node = c->now.node;
	s->fresh = true;
	s->had = s->n;
}

void callstacks_pop(struct shadow *s)
{
	if (--s->n < s->had)
		s->fresh = false;
}

void callstacks_move(struct callstacks *c, uint64_t sp)
{
	uint32_t to = callstacks_find(c, c->stack[c->now.cur].space, sp);
	struct shadow *s = &c->stack[to];

	callstacks_drop_below(s, sp);
	if (to == c->now.cur) {
		callstacks_enter(c, to);
		return;
	}
	callstacks_switch(c, s);
	callstacks_enter(c, to);
}

void callstacks_push(struct callstacks *c, const struct frame *f)
{
	struct shadow *s = &c->stack[c->now.cur];

	/* A frame at the same address was left without a return. */
	callstacks_drop_below(s, f->sp + 1);
	if (s->n >= CALLSTACKS_MAX_DEPTH || ARRAY_ROOM(s->frame, s->n, s->cap)) {
		c->stats.deep++;
		return;
	}
	s->frame[s->n++] = *f;
	c->now.node = f->node;
}

void callstacks_set_part(struct callstacks *c, uint32_t part)
{
	struct calltree *t = &c->tree;

	t->part = part;
	for (size_t i = 0; i < c->nstacks; i++) {
		struct shadow *s = &c->stack[i];

		s->base_node = calltree_copy_chain(t, s->base_node);
		for (size_t k = 0; k < s->n; k++)
			s->frame[k].node = calltree_copy_chain(t, s->frame[k].node);
	}
	for (uint32_t i = 0; i < c->ncpus; i++)
		c->turn[i].node = calltree_copy_chain(t, c->turn[i].node);
	c->now.node = calltree_copy_chain(t, c->now.node);
}

void callstacks_free_stacks(struct callstacks *c)
{
	for (size_t i = 0; i < c->nstacks; i++)
		free(c->stack[i].frame);
	free(c->stack);
}

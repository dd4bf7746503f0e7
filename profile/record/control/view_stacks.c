/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/control/view_stacks.h"

#include "base/sample.h"

#include <stdlib.h>
#include <string.h>

static void drop_mark(struct live_mark *m)
{
	free(m->stack);
	free(m->cpu);
	*m = (struct live_mark){ 0 };
}

void view_stacks_end(struct live_stacks *s)
{
	uint64_t seq = s->seq;

	for (unsigned int i = 0; i < LIVE_MARKS; i++)
		drop_mark(&s->mark[i]);
	table_deinit(&s->stacks);
	table_deinit(&s->hits);
	free(s->frame);
	free(s->cpu);
	*s = (struct live_stacks){ .seq = seq };
}

static bool equal_stack(const void *a, const void *b, const void *ctx)
{
	const struct live_stack *x = a, *y = b;
	const uint32_t *frame = ctx;

	return x->pid == y->pid && x->tid == y->tid && x->comm == y->comm && x->cpu == y->cpu &&
	       x->mode == y->mode && x->event == y->event && x->n == y->n &&
	       !memcmp(frame + x->first, frame + y->first, x->n * sizeof(*frame));
}

static bool equal_hit(const void *a, const void *b, const void *ctx)
{
	(void)ctx;
	return ((const struct live_hit *)a)->addr == ((const struct live_hit *)b)->addr;
}

bool view_stacks_begin(struct live_stacks *s, unsigned int vcpus, uint64_t now_ns)
{
	view_stacks_end(s);
	/* Untouched pages use no memory. */
	s->frame = malloc((LIVE_MAX_FRAMES + LIVE_MAX_DEPTH) * sizeof(*s->frame));
	s->cpu = calloc(vcpus, sizeof(*s->cpu));
	s->stacks = TABLE_OF(struct live_stack, equal_stack);
	s->stacks.ctx = s->frame;
	s->hits = TABLE_OF(struct live_hit, equal_hit);
	s->vcpus = vcpus;
	s->began_ns = now_ns;
	if (s->frame && s->cpu)
		return true;
	view_stacks_end(s);
	return false;
}

static uint64_t hash_stack(const struct live_stack *x, const uint32_t *frame)
{
	uint64_t h = table_mix((uint64_t)x->pid << 32 | x->tid,
			       (uint64_t)x->comm << 32 | x->cpu << 16 | (unsigned)x->mode << 8 |
				       x->event);

	for (unsigned int i = 0; i < x->n; i++)
		h = table_mix(h, frame[i]);
	return h;
}

/* Returns NULL if there is no room for another one. */
static struct live_stack *view_stacks_find(struct live_stacks *s, const struct live_stack *like,
					   const uint32_t *frame)
{
	uint64_t hash = hash_stack(like, frame);
	struct live_stack x = *like;
	uint32_t index;
	bool fresh;

	/* Behind the others there is always room for one that is only looked up. */
	x.first = (uint32_t)s->nframes;
	memcpy(s->frame + x.first, frame, x.n * sizeof(*frame));
	if (s->n >= LIVE_MAX_STACKS || x.n > LIVE_MAX_FRAMES - s->nframes)
		return table_find(&s->stacks, hash, &x, &index) ? &s->stack[index] : NULL;
	if (table_add(&s->stacks, hash, &x, &index, &fresh))
		return NULL;
	s->stack = s->stacks.item;
	s->n = s->stacks.n;
	s->nframes += fresh ? x.n : 0;
	return &s->stack[index];
}

static void view_stacks_count(struct live_count *c, uint64_t weight)
{
	c->weight += weight;
	c->count++;
}

void view_stacks_add(struct live_stacks *s, const struct live_stack *like, const uint32_t *frame,
		     uint64_t weight, uint64_t time_ns)
{
	struct live_stack *x;

	if (like->event >= PROFILE_MAX_EVENTS ||
	    (like->cpu >= s->vcpus && like->cpu != SAMPLE_NO_CPU))
		return;
	view_stacks_count(&s->totals.all[like->event], weight);
	if (!like->event && like->cpu < s->vcpus)
		s->cpu[like->cpu].mode[like->mode & 3] += weight;
	x = view_stacks_find(s, like, frame);
	if (x) {
		view_stacks_count(&x->total, weight);
		return;
	}
	view_stacks_count(&s->totals.rest[like->event], weight);
	if (!s->full_ns)
		s->full_ns = time_ns;
}

void view_stacks_hit(struct live_stacks *s, uint64_t addr, uint64_t weight)
{
	const struct live_hit like = { .addr = addr };
	uint64_t hash = table_mix(addr, 0);
	uint32_t index;
	bool fresh;

	if (s->hits.n >= LIVE_MAX_HITS ? table_find(&s->hits, hash, &like, &index)
				       : !table_add(&s->hits, hash, &like, &index, &fresh))
		((struct live_hit *)s->hits.item)[index].weight += weight;
}

const struct live_mark *view_stacks_find_mark(const struct live_stacks *s, uint64_t seq)
{
	const struct live_mark *m = &s->mark[seq % LIVE_MARKS];

	return seq && m->seq == seq ? m : NULL;
}

void view_stacks_mark(struct live_stacks *s, uint64_t now_ns)
{
	struct live_mark *m = &s->mark[++s->seq % LIVE_MARKS];

	drop_mark(m);
	m->stack = malloc((s->n + 1) * sizeof(*m->stack));
	m->cpu = malloc(s->vcpus * sizeof(*m->cpu));
	if (!m->stack || !m->cpu) {
		drop_mark(m);
		return;
	}
	for (size_t i = 0; i < s->n; i++)
		m->stack[i] = s->stack[i].total;
	m->n = s->n;
	memcpy(m->cpu, s->cpu, s->vcpus * sizeof(*m->cpu));
	m->totals = s->totals;
	m->time_ns = now_ns;
	m->seq = s->seq;
}

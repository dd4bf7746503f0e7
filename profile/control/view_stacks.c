/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/control/view_stacks.h"

#include "base/table.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS (2 * LIVE_MAX_STACKS)

static void drop_mark(struct live_mark *m)
{
	free(m->stack);
	free(m->cpu);
	*m = (struct live_mark){ 0 };
}

void live_stacks_end(struct live_stacks *s)
{
	uint64_t seq = s->seq;

	for (unsigned int i = 0; i < LIVE_MARKS; i++)
		drop_mark(&s->mark[i]);
	free(s->stack);
	free(s->frame);
	free(s->slot);
	free(s->cpu);
	free(s->hit);
	*s = (struct live_stacks){ .seq = seq };
}

bool live_stacks_begin(struct live_stacks *s, unsigned int vcpus, uint64_t now_ns)
{
	live_stacks_end(s);
	/* Pages that are not written take no memory. */
	s->stack = malloc(LIVE_MAX_STACKS * sizeof(*s->stack));
	s->frame = malloc(LIVE_MAX_FRAMES * sizeof(*s->frame));
	s->slot = calloc(SLOTS, sizeof(*s->slot));
	s->cpu = calloc(vcpus, sizeof(*s->cpu));
	s->hit = calloc(LIVE_HIT_SLOTS, sizeof(*s->hit));
	s->vcpus = vcpus;
	s->began_ns = now_ns;
	if (s->stack && s->frame && s->slot && s->cpu && s->hit)
		return true;
	live_stacks_end(s);
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

static bool is_equal(const struct live_stacks *s, const struct live_stack *x,
		     const struct live_stack *y, const uint32_t *frame)
{
	return x->pid == y->pid && x->tid == y->tid && x->comm == y->comm && x->cpu == y->cpu &&
	       x->mode == y->mode && x->event == y->event && x->n == y->n &&
	       !memcmp(s->frame + x->first, frame, x->n * sizeof(*frame));
}

/* NULL: there is no room for another one. */
static struct live_stack *find(struct live_stacks *s, const struct live_stack *like,
			       const uint32_t *frame)
{
	size_t at = hash_stack(like, frame) & (SLOTS - 1);
	struct live_stack *x;

	for (; s->slot[at]; at = (at + 1) & (SLOTS - 1)) {
		x = &s->stack[s->slot[at] - 1];
		if (is_equal(s, x, like, frame))
			return x;
	}
	if (s->n >= LIVE_MAX_STACKS || like->n > LIVE_MAX_FRAMES - s->nframes)
		return NULL;
	x = &s->stack[s->n++];
	*x = *like;
	x->first = (uint32_t)s->nframes;
	x->total = (struct live_count){ 0 };
	memcpy(s->frame + s->nframes, frame, like->n * sizeof(*frame));
	s->nframes += like->n;
	s->slot[at] = (uint32_t)s->n;
	return x;
}

static void count(struct live_count *c, uint64_t weight)
{
	c->weight += weight;
	c->count++;
}

void live_stacks_add(struct live_stacks *s, const struct live_stack *like, const uint32_t *frame,
		     uint64_t weight, uint64_t time_ns)
{
	struct live_stack *x;

	if (like->event >= PROFILE_MAX_EVENTS || like->cpu >= s->vcpus)
		return;
	count(&s->totals.all[like->event], weight);
	if (!like->event)
		s->cpu[like->cpu].mode[like->mode & 3] += weight;
	x = find(s, like, frame);
	if (x) {
		count(&x->total, weight);
		return;
	}
	count(&s->totals.rest[like->event], weight);
	if (!s->full_ns)
		s->full_ns = time_ns;
}

void live_stacks_hit(struct live_stacks *s, uint64_t addr, uint64_t weight)
{
	size_t at = table_mix(addr, 0) & (LIVE_HIT_SLOTS - 1);

	while (s->hit[at].addr && s->hit[at].addr != addr)
		at = (at + 1) & (LIVE_HIT_SLOTS - 1);
	if (!s->hit[at].addr) {
		if (!addr || s->nhits >= LIVE_MAX_HITS)
			return;
		s->hit[at].addr = addr;
		s->nhits++;
	}
	s->hit[at].weight += weight;
}

const struct live_mark *live_stacks_find_mark(const struct live_stacks *s, uint64_t seq)
{
	const struct live_mark *m = &s->mark[seq % LIVE_MARKS];

	return seq && m->seq == seq ? m : NULL;
}

void live_stacks_mark(struct live_stacks *s, uint64_t now_ns)
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

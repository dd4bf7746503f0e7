/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/pipeline/merge.h"

#include "base/clock.h"

#include <stdlib.h>

/*
 * Bytes that are prefetched of the sample after the next one: its head and the frames at the top of
 * its stack.
 */
#define PREFETCH_BYTES 3072u
/*
 * Bytes of one prefetch. With more at once the processor would stall for those that it requested
 * already.
 */
#define PREFETCH_STEP 1024u
#define LINE 64u

struct merge_head {
	uint64_t time_ns;
	const struct sample *s;
	size_t len;
	struct ring *ring;
};

struct merge {
	struct merge_head *heap; /* n entries, room for `all`; no entry is older than its parent */
	struct ring **empty;	 /* the rings that are not in the heap */
	unsigned int n, nempty, all;
	/* CLOCK_MONOTONIC of the last poll, at which `empty` had no samples; 0: never */
	uint64_t looked_ns;
	const uint8_t *ahead; /* rest of the sample after the next one that is not prefetched yet */
	size_t ahead_len;
};

struct merge *merge_create(merge_ring ring, void *ctx, unsigned int n)
{
	struct merge *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->all = m->nempty = n;
	m->heap = calloc(n, sizeof(*m->heap));
	m->empty = calloc(n, sizeof(*m->empty));
	if (!m->heap || !m->empty) {
		merge_destroy(m);
		return NULL;
	}
	for (unsigned int i = 0; i < n; i++)
		m->empty[i] = ring(ctx, i);
	return m;
}

void merge_destroy(struct merge *m)
{
	if (!m)
		return;
	free(m->heap);
	free(m->empty);
	free(m);
}

static bool merge_peek(struct ring *ring, struct merge_head *out)
{
	out->ring = ring;
	out->s = ring_peek(ring, &out->len);
	if (out->s)
		out->time_ns = out->s->time_ns;
	return out->s;
}

/* Inserts h at index i or below it. */
static void merge_down(struct merge *m, unsigned int i, struct merge_head h)
{
	for (;;) {
		unsigned int child = 2 * i + 1;

		if (child >= m->n)
			break;
		if (child + 1 < m->n && m->heap[child + 1].time_ns < m->heap[child].time_ns)
			child++;
		if (m->heap[child].time_ns >= h.time_ns)
			break;
		m->heap[i] = m->heap[child];
		i = child;
	}
	m->heap[i] = h;
}

static void merge_add(struct merge *m, struct merge_head h)
{
	unsigned int i = m->n++;

	for (; i && m->heap[(i - 1) / 2].time_ns > h.time_ns; i = (i - 1) / 2)
		m->heap[i] = m->heap[(i - 1) / 2];
	m->heap[i] = h;
}

static void merge_look(struct merge *m)
{
	unsigned int still = 0;
	struct merge_head h;

	m->looked_ns = clock_mono_ns();
	for (unsigned int i = 0; i < m->nempty; i++)
		if (merge_peek(m->empty[i], &h))
			merge_add(m, h);
		else
			m->empty[still++] = m->empty[i];
	m->nempty = still;
}

void merge_prefetch(struct merge *m)
{
	size_t n = m->ahead_len < PREFETCH_STEP ? m->ahead_len : PREFETCH_STEP;

	for (size_t at = 0; at < n; at += LINE)
		__builtin_prefetch(m->ahead + at);
	m->ahead += n;
	m->ahead_len -= n;
}

static void merge_look_ahead(struct merge *m)
{
	const struct merge_head *h;

	/* The next record of the same ring, which merge_release() will read. */
	__builtin_prefetch((const uint8_t *)m->heap[0].s + m->heap[0].len);
	m->ahead_len = 0;
	if (m->n < 2)
		return;
	h = &m->heap[m->n > 2 && m->heap[2].time_ns < m->heap[1].time_ns ? 2 : 1];
	m->ahead = (const uint8_t *)h->s;
	m->ahead_len = h->len < PREFETCH_BYTES ? h->len : PREFETCH_BYTES;
	merge_prefetch(m);
}

const struct sample *merge_next(struct merge *m)
{
	if (m->nempty && (!m->n || m->heap[0].time_ns > m->looked_ns))
		merge_look(m);
	if (!m->n)
		return NULL;
	merge_look_ahead(m);
	return m->heap[0].s;
}

void merge_release(struct merge *m)
{
	struct merge_head h;
	struct ring *ring = m->heap[0].ring;

	ring_release(ring);
	if (merge_peek(ring, &h)) {
		merge_down(m, 0, h);
		return;
	}
	/* The ring became empty after the last poll; the next poll includes it. */
	m->empty[m->nempty++] = ring;
	h = m->heap[--m->n];
	if (m->n)
		merge_down(m, 0, h);
}

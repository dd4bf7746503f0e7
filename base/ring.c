/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/ring.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/*
 * Each record is preceded by 8 bytes: its length, or SKIP where the rest of
 * the buffer up to its end is unused because the record did not fit there.
 */
#define HDR sizeof(uint64_t)
#define SKIP UINT64_MAX

static size_t aligned(size_t len)
{
	return (len + 7) & ~(size_t)7;
}

int ring_init(struct ring *r, size_t size)
{
	size_t want = 4096;

	while (want < size)
		want *= 2;
	memset(r, 0, sizeof(*r));
	r->data = aligned_alloc(4096, want);
	if (!r->data)
		return -ENOMEM;
	/* A huge page would be resident for the first sample. Where this fails, it is. */
	(void)madvise(r->data, want, MADV_NOHUGEPAGE);
	r->size = want;
	return 0;
}

void ring_deinit(struct ring *r)
{
	free(r->data);
	r->data = NULL;
}

/* Where the byte that is counted as `pos` lies. */
static size_t ring_place(const struct ring *r, size_t pos)
{
	return (pos - r->bias) & (r->size - 1);
}

static void put_hdr(struct ring *r, size_t at, uint64_t v)
{
	memcpy(r->data + ring_place(r, at), &v, sizeof(v));
}

static uint64_t get_hdr(const struct ring *r, size_t at)
{
	uint64_t v;

	memcpy(&v, r->data + ring_place(r, at), sizeof(v));
	return v;
}

void *ring_reserve(struct ring *r, size_t len)
{
	size_t head = r->written;
	size_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);
	size_t need = HDR + aligned(len);
	size_t to_end, skip;

	/*
	 * Empty: begin at the first byte again, so that a consumer that keeps up
	 * costs few pages. It looks at the bias only after it saw a new head, and
	 * gave back everything before we saw its tail: no one reads it now.
	 */
	if (head == tail)
		r->bias = head;
	to_end = r->size - ring_place(r, head);
	skip = need > to_end ? to_end : 0;
	if (len > r->size / 2 || need + skip > r->size - (head - tail)) {
		ring_drop(r);
		return NULL;
	}
	if (skip)
		put_hdr(r, head, SKIP);
	r->pending = head + skip;
	return r->data + ring_place(r, r->pending) + HDR;
}

void ring_commit(struct ring *r, size_t used)
{
	put_hdr(r, r->pending, used);
	r->written = r->pending + HDR + aligned(used);
	if (!r->held)
		atomic_store_explicit(&r->head, r->written, memory_order_release);
}

void ring_hold(struct ring *r)
{
	r->held = true;
}

void ring_unhold(struct ring *r)
{
	r->held = false;
	atomic_store_explicit(&r->head, r->written, memory_order_release);
}

void *ring_held(struct ring *r, size_t *at)
{
	size_t head = atomic_load_explicit(&r->head, memory_order_relaxed), pos = head + *at;
	uint64_t n;

	if (pos == r->written)
		return NULL;
	n = get_hdr(r, pos);
	if (n == SKIP) {
		pos += r->size - ring_place(r, pos);
		n = get_hdr(r, pos);
	}
	*at = pos + HDR + aligned((size_t)n) - head;
	return r->data + ring_place(r, pos) + HDR;
}

void ring_drop(struct ring *r)
{
	atomic_fetch_add_explicit(&r->dropped, 1, memory_order_relaxed);
}

size_t ring_used(const struct ring *r)
{
	struct ring *any = (struct ring *)r;

	return r->written - atomic_load_explicit(&any->tail, memory_order_relaxed);
}

unsigned int ring_one_of(const struct ring *r)
{
	size_t free = r->size - ring_used(r);
	unsigned int n = 1;

	for (size_t limit = r->size / 4; free <= limit && n < RING_THIN_MOST; limit /= 2)
		n *= 2;
	return n;
}

const void *ring_peek(struct ring *r, size_t *len)
{
	size_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
	size_t head = atomic_load_explicit(&r->head, memory_order_acquire);
	uint64_t n;

	if (tail == head)
		return NULL;
	n = get_hdr(r, tail);
	if (n == SKIP) {
		tail += r->size - ring_place(r, tail);
		atomic_store_explicit(&r->tail, tail, memory_order_release);
		assert(tail != head);
		n = get_hdr(r, tail);
	}
	*len = (size_t)n;
	return r->data + ring_place(r, tail) + HDR;
}

void ring_release(struct ring *r)
{
	size_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
	uint64_t n = get_hdr(r, tail);

	assert(n != SKIP);
	atomic_store_explicit(&r->tail, tail + HDR + aligned((size_t)n), memory_order_release);
}

uint64_t ring_dropped(const struct ring *r)
{
	return atomic_load_explicit(&((struct ring *)r)->dropped, memory_order_relaxed);
}

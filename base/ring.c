/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/ring.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/*
 * Each record is preceded by 8 bytes: its length, or SKIP if the rest of the buffer up to its end
 * is unused because the next record did not fit there.
 */
#define HDR sizeof(uint64_t)
#define SKIP UINT64_MAX

static size_t aligned(size_t len)
{
	return (len + 7) & ~(size_t)7;
}

size_t ring_round(size_t size)
{
	size_t want = 4096;

	while (want < size && want <= SIZE_MAX / 2)
		want *= 2;
	return want;
}

void ring_init_shared(struct ring *r, void *data, size_t size, struct ring_head *front,
		      struct ring_tail *back)
{
	memset(r, 0, sizeof(*r));
	r->data = data;
	r->size = size;
	r->front = front;
	r->back = back;
}

int ring_init(struct ring *r, size_t size)
{
	size_t want = ring_round(size);

	memset(r, 0, sizeof(*r));
	r->data = aligned_alloc(4096, want);
	if (!r->data)
		return -ENOMEM;
	/* A huge page would become resident with the first sample. If this call fails, it does. */
	(void)madvise(r->data, want, MADV_NOHUGEPAGE);
	r->size = want;
	r->front = &r->own_front;
	r->back = &r->own_back;
	return 0;
}

void ring_deinit(struct ring *r)
{
	if (r->front == &r->own_front) /* else ring_init_shared()'s caller owns it */
		free(r->data);
	r->data = NULL;
}

/* Returns the offset in data[] of the byte at position `pos`. */
static size_t ring_place(const struct ring *r, size_t pos)
{
	size_t bias = atomic_load_explicit(&r->front->bias, memory_order_relaxed);

	return (pos - bias) & (r->size - 1);
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

/*
 * Returns whether a record of len bytes fits behind the last one. Stores in *skip the bytes to
 * leave unused before it.
 */
static bool ring_fits(const struct ring *r, size_t tail, size_t len, size_t *skip)
{
	size_t head = r->written, need = HDR + aligned(len), to_end;

	/* A consumer in another process may store any value as tail. */
	if (len > r->size / 2 || head - tail > r->size)
		return false;
	to_end = head == tail ? r->size : r->size - ring_place(r, head);
	*skip = need > to_end ? to_end : 0;
	return need + *skip <= r->size - (head - tail);
}

void *ring_reserve(struct ring *r, size_t len)
{
	size_t head = r->written, skip;
	size_t tail = atomic_load_explicit(&r->back->tail, memory_order_acquire);

	/*
	 * The ring is empty: begin at the first byte again, so that a consumer that keeps up
	 * touches few pages. The consumer reads the bias only after it has seen a new head, and it
	 * released everything before we saw its tail, so it does not read the bias now.
	 */
	if (head == tail)
		atomic_store_explicit(&r->front->bias, head, memory_order_relaxed);
	if (!ring_fits(r, tail, len, &skip)) {
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
		atomic_store_explicit(&r->front->head, r->written, memory_order_release);
}

void ring_hold(struct ring *r)
{
	r->held = true;
}

void ring_unhold(struct ring *r)
{
	r->held = false;
	atomic_store_explicit(&r->front->head, r->written, memory_order_release);
}

void *ring_held(struct ring *r, size_t *at)
{
	size_t head = atomic_load_explicit(&r->front->head, memory_order_relaxed), pos = head + *at;
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
	atomic_fetch_add_explicit(&r->front->dropped, 1, memory_order_relaxed);
}

size_t ring_used(const struct ring *r)
{
	size_t used = r->written - atomic_load_explicit(&r->back->tail, memory_order_relaxed);

	return used <= r->size ? used : r->size;
}

unsigned int ring_keep_one_of(const struct ring *r)
{
	size_t free = r->size - ring_used(r);
	unsigned int n = 1;

	for (size_t limit = r->size / 4; free <= limit && n < RING_THIN_MOST; limit /= 2)
		n *= 2;
	return n;
}

const void *ring_peek(struct ring *r, size_t *len)
{
	size_t tail = atomic_load_explicit(&r->back->tail, memory_order_relaxed);
	size_t head = atomic_load_explicit(&r->front->head, memory_order_acquire);
	uint64_t n;

	if (tail == head)
		return NULL;
	n = get_hdr(r, tail);
	if (n == SKIP) {
		tail += r->size - ring_place(r, tail);
		atomic_store_explicit(&r->back->tail, tail, memory_order_release);
		assert(tail != head);
		n = get_hdr(r, tail);
	}
	*len = (size_t)n;
	return r->data + ring_place(r, tail) + HDR;
}

void ring_release(struct ring *r)
{
	size_t tail = atomic_load_explicit(&r->back->tail, memory_order_relaxed);
	uint64_t n = get_hdr(r, tail);

	assert(n != SKIP);
	atomic_store_explicit(&r->back->tail, tail + HDR + aligned((size_t)n),
			      memory_order_release);
}

uint64_t ring_dropped(const struct ring *r)
{
	return atomic_load_explicit(&r->front->dropped, memory_order_relaxed);
}

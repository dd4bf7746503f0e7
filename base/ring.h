/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ring: a single-producer, single-consumer queue of variable-size records.
 *
 * The producer is a vCPU thread, which must neither block nor allocate: it
 * reserves the largest record that it may need, writes in place, and commits
 * what it used. When there is no room the new record is dropped and counted;
 * nothing that was committed is ever overwritten.
 *
 * Records are contiguous (a record that would wrap starts again at offset 0)
 * and 8-byte aligned.
 */
#ifndef KVMPROF_BASE_RING_H
#define KVMPROF_BASE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Written by the producer. Positions count bytes since the start. */
struct ring_head {
	_Alignas(64) atomic_size_t head;
	atomic_size_t bias; /* position that lies at data[0]; changes while the ring is empty */
	atomic_uint_fast64_t dropped; /* records refused */
};

/* Written by the consumer. head - tail is what is queued. */
struct ring_tail {
	_Alignas(64) atomic_size_t tail;
};

struct ring {
	uint8_t *data;
	size_t size; /* power of two */
	struct ring_head *front;
	struct ring_tail *back;
	size_t pending; /* producer only: offset of the reserved record, counted like head */
	size_t written; /* producer only: behind the last record; head, but while records are held */
	bool held;	/* producer only */
	struct ring_head own_front;
	struct ring_tail own_back;
};

/* Returns the size that a ring for `size` bytes has: a power of two, at least 4096; less than `size` only if that is beyond the largest one. */
size_t ring_round(size_t size);
/* Initializes a ring of ring_round(size) bytes. Returns 0 or -ENOMEM. */
int ring_init(struct ring *r, size_t size);
/*
 * Initializes one end of a ring between two processes. `size` is from ring_round(). The caller owns the memory:
 * `data` and `front` may be read-only for the consumer, `back` for the producer. The producer never writes
 * outside of `data`, whatever the consumer stores in *back.
 */
void ring_init_shared(struct ring *r, void *data, size_t size, struct ring_head *front,
		      struct ring_tail *back);
void ring_deinit(struct ring *r);

/* Producer: room for len bytes, or NULL (counted as dropped). */
void *ring_reserve(struct ring *r, size_t len);
/* Producer: publish the first used bytes (<= the reserved len) of the reservation. */
void ring_commit(struct ring *r, size_t used);
/*
 * Producer: what is committed from now on stays out of the consumer's sight, and may be changed,
 * until ring_unhold(). Both may be called twice in a row.
 */
void ring_hold(struct ring *r);
void ring_unhold(struct ring *r);
/* Producer: the next held record; *at is 0 for the first one. NULL: there are no more. */
void *ring_held(struct ring *r, size_t *at);
/* Producer: count a record that was given up before it was reserved or committed. */
void ring_drop(struct ring *r);

/* Producer: bytes of the ring that are not free. */
size_t ring_used(const struct ring *r);

/*
 * Producer: one of how many records to keep, 1 to RING_THIN_MOST.
 *
 * Where records come faster than they are taken, the ring would be full most of the time: which of
 * them find room would depend on when the consumer comes, and all of a moment were lost. So a ring
 * that is three quarters full gets one of two, and one of twice as many for each half of the rest
 * that is gone.
 */
#define RING_THIN_MOST 64u
unsigned int ring_one_of(const struct ring *r);

/* Consumer: the oldest record and its length, or NULL when there is none. */
const void *ring_peek(struct ring *r, size_t *len);
/* Consumer: give back the record that ring_peek returned. */
void ring_release(struct ring *r);

/* Any thread. */
uint64_t ring_dropped(const struct ring *r);

#endif

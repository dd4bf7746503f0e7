/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ring: a single-producer, single-consumer queue of variable-size records.
 *
 * The producer is a vCPU thread, which must neither block nor allocate: it reserves the largest
 * record that it may need, writes in place, and commits the part that it used. If there is no room,
 * the new record is dropped and counted. A committed record is never overwritten.
 *
 * Records are contiguous (a record that would wrap starts again at offset 0) and 8-byte aligned.
 * The comment of each function names the thread that may call it.
 */
#ifndef KVMPROF_BASE_RING_H
#define KVMPROF_BASE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* State that the producer writes. Positions count bytes since the start. */
struct ring_head {
	_Alignas(64) atomic_size_t head;
	/* The position that is at data[0]; changes only while the ring is empty. */
	atomic_size_t bias;
	atomic_uint_fast64_t dropped; /* number of records refused */
};

/* State that the consumer writes. The bytes from tail to head are queued. */
struct ring_tail {
	_Alignas(64) atomic_size_t tail;
};

struct ring {
	uint8_t *data;
	size_t size; /* power of two */
	struct ring_head *front;
	struct ring_tail *back;
	size_t pending; /* producer only: position of the reserved record */
	/* Producer only: position behind the last record; equals head unless records are held. */
	size_t written;
	bool held; /* producer only: ring_hold() is in effect */
	struct ring_head own_front;
	struct ring_tail own_back;
};

/*
 * Returns the size of a ring for `size` bytes: a power of two, at least 4096. It is less than
 * `size` only if that is beyond the largest power of two.
 */
size_t ring_round(size_t size);
/*
 * Initialises a ring of ring_round(size) bytes, which ring_deinit() frees. Returns 0 or -ENOMEM.
 * Called before both threads use it.
 */
int ring_init(struct ring *r, size_t size);
/*
 * Initialises one end of a ring between two processes. `size` is from ring_round(). The caller owns
 * and keeps the memory: `data` and `front` may be read-only for the consumer, `back` for the
 * producer. The producer never writes outside of `data`, whatever the consumer stores in *back.
 */
void ring_init_shared(struct ring *r, void *data, size_t size, struct ring_head *front,
		      struct ring_tail *back);
/* Frees the memory of ring_init(). Called when no thread uses the ring any more. */
void ring_deinit(struct ring *r);

/*
 * Returns room for a record of len bytes, valid until ring_commit(). Returns NULL and counts a
 * dropped record if there is none. Called by the producer.
 */
void *ring_reserve(struct ring *r, size_t len);
/*
 * Publishes the first `used` bytes (<= the reserved len) of the reservation as one record. Called
 * by the producer.
 */
void ring_commit(struct ring *r, size_t used);
/*
 * Hides the records that are committed from now on from the consumer, until ring_unhold(). The
 * producer may change them meanwhile. A second call has no effect. Called by the producer.
 */
void ring_hold(struct ring *r);
/* Publishes the held records. Does nothing if records are not held. Called by the producer. */
void ring_unhold(struct ring *r);
/*
 * Returns the next held record and advances *at, which is 0 for the first one. Returns NULL after
 * the last. Called by the producer.
 */
void *ring_held(struct ring *r, size_t *at);
/* Counts a dropped record that was never reserved or committed. Called by the producer. */
void ring_drop(struct ring *r);

/* Returns the number of bytes in use. Called by the producer. */
size_t ring_used(const struct ring *r);

/*
 * Returns n for "keep one of n records", 1 to RING_THIN_MOST. Called by the producer.
 *
 * If records arrive faster than they are consumed, the ring would be full most of the time. Then
 * the consumer's timing would decide which records are kept, and all records of some stretches of
 * time would be lost. Thinning starts when the ring is three quarters full: one of two records is
 * kept, and the divisor doubles each time the free part halves.
 */
#define RING_THIN_MOST 64u
unsigned int ring_keep_one_of(const struct ring *r);

/*
 * Returns the oldest record and stores its length in *len. It stays valid until ring_release().
 * Returns NULL if the ring is empty. Called by the consumer.
 */
const void *ring_peek(struct ring *r, size_t *len);
/* Frees the record that ring_peek() returned. Called by the consumer. */
void ring_release(struct ring *r);

/* Returns the number of records dropped. Any thread may call it. */
uint64_t ring_dropped(const struct ring *r);

#endif

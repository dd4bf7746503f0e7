/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perf_ring: reads the ring buffer into which the kernel writes the records of a perf event
 * (perf_event_open(2), MMAP layout).
 *
 * Each ring has one reading thread, which may be any. The kernel writes, and reports records that
 * found no room as PERF_RECORD_LOST. All functions except perf_ring_map() accept a ring whose page
 * is NULL as empty, unless stated otherwise.
 */
#ifndef KVMPROF_BASE_PERF_RING_H
#define KVMPROF_BASE_PERF_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum bytes of a record that is passed on; longer ones are skipped. */
#define PERF_RING_RECORD_MAX 1024u

struct perf_ring {
	struct perf_event_mmap_page *page; /* the mapping; NULL: none */
	size_t size;			   /* bytes of data behind the page, a power of two */
};

/*
 * Maps the ring of the event's descriptor with `pages` pages of data, a power of two. Returns 0, or
 * -errno with nothing mapped. The caller unmaps it with perf_ring_unmap().
 */
int perf_ring_map(struct perf_ring *r, int fd, size_t pages);
/* Unmaps the ring; does nothing if there is none. */
void perf_ring_unmap(struct perf_ring *r);

union perf_record {
	struct perf_event_header h; /* h.size is the length of the whole record in bytes */
	char bytes[PERF_RING_RECORD_MAX];
};

/*
 * Calls take(ctx, h) for each complete record, oldest first, and frees their space. h is valid
 * during the call only.
 */
void perf_ring_drain(struct perf_ring *r,
		     void (*take)(void *ctx, const struct perf_event_header *h), void *ctx);

/*
 * Returns the position behind the newest record, which bounds the functions below. Callers that
 * merge the records of several rings by time read it once, so that the merge ends although the
 * kernel keeps writing.
 */
uint64_t perf_ring_head(const struct perf_ring *r);
/*
 * Calls take(ctx, h) like perf_ring_drain() for the records before `head`, but leaves them in the
 * ring.
 */
void perf_ring_visit(const struct perf_ring *r, uint64_t head,
		     void (*take)(void *ctx, const struct perf_event_header *h), void *ctx);
/*
 * Copies the oldest record before `head` and leaves it in the ring; frees records that are too
 * long. Returns false if there is none.
 */
bool perf_ring_first(struct perf_ring *r, uint64_t head, union perf_record *out);
/* Frees the space of the record that perf_ring_first() has copied. The ring must be mapped. */
void perf_ring_skip(struct perf_ring *r, const union perf_record *first);

/* Returns the 64-bit word i after the record's header. The record must be long enough. */
uint64_t perf_record_word(const struct perf_event_header *h, unsigned int i);

/*
 * Reads the call chain of a record, whose length is word `at` (u64 nr, u64 ips[nr]): stores its
 * addresses, innermost first, at most max, without the PERF_CONTEXT_* marks. Returns their number,
 * which is smaller if the record is too short.
 */
unsigned int perf_record_chain(const struct perf_event_header *h, unsigned int at, uint64_t *ip,
			       unsigned int max);

/*
 * Returns how many of a chain's n addresses can be trusted in a program that kvmprof did not build:
 * those of the kernel and one function. The kernel finds the callers by frame pointers, which most
 * programs lack, so those addresses could be anything.
 */
unsigned int perf_chain_trusted(const uint64_t *ip, unsigned int n);

#endif

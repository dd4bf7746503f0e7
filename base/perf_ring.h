/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perf_ring: the ring in which the kernel writes a perf event's records (perf_event_open(2), MMAP layout).
 *
 * One reader, any thread; the kernel is the writer, and counts what finds no room in PERF_RECORD_LOST.
 */
#ifndef KVMPROF_BASE_PERF_RING_H
#define KVMPROF_BASE_PERF_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a record that is handed on; longer ones are passed over. */
#define PERF_RING_RECORD_MAX 1024u

struct perf_ring {
	struct perf_event_mmap_page
		*page; /* NULL: there is none; fine in the calls below but the first */
	size_t size;   /* of the data behind it, a power of two */
};

/* So many pages of data, a power of two, of the event's descriptor. -errno; nothing is mapped then. */
int perf_ring_map(struct perf_ring *r, int fd, size_t pages);
void perf_ring_unmap(struct perf_ring *r);

union perf_record {
	struct perf_event_header h; /* of h.size bytes */
	char bytes[PERF_RING_RECORD_MAX];
};

/* Hand on all that is there, whole records, and make room. h is valid during the call. */
void perf_ring_drain(struct perf_ring *r,
		     void (*take)(void *ctx, const struct perf_event_header *h), void *ctx);

/*
 * For who takes the records of several rings in the order of their times: what is there up to `head`, which was asked for
 * before, so that it comes to an end.
 */
uint64_t perf_ring_head(const struct perf_ring *r);
/* As perf_ring_drain(), and all stays there. */
void perf_ring_look(const struct perf_ring *r, uint64_t head,
		    void (*take)(void *ctx, const struct perf_event_header *h), void *ctx);
/* Copy the first one, which stays there. false: there is none. */
bool perf_ring_first(struct perf_ring *r, uint64_t head, union perf_record *out);
/* Make room of the one that perf_ring_first() has copied. */
void perf_ring_pass(struct perf_ring *r, const union perf_record *first);

/* Word i of a record, behind its header; it has as many. */
uint64_t perf_record_word(const struct perf_event_header *h, unsigned int i);

/*
 * The call chain of a record, whose length is word `at` (u64 nr, u64 ips[nr]): its addresses, innermost first, `max` at most,
 * without the marks between them. Returns how many; of a record that ends before, those that are there.
 */
unsigned int perf_record_chain(const struct perf_event_header *h, unsigned int at, uint64_t *ip,
			       unsigned int max);

/*
 * How many of a chain's n addresses can be trusted in a program that is not ours: the kernel's, and one function. The kernel finds
 * that one's callers by frame pointers, which most programs are built without: they could be anything.
 */
unsigned int perf_chain_foreign(const uint64_t *ip, unsigned int n);

#endif

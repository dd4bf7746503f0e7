/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sample_queue: a queue of samples that wait until the place of the kernel is known, in the order
 * in which they were added.
 *
 * Not thread-safe: all calls come from the consumer thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_PIPELINE_SAMPLE_QUEUE_H
#define KVMPROF_PROFILE_RECORD_PIPELINE_SAMPLE_QUEUE_H

#include "base/buf.h"
#include "base/sample.h"

#include <stdbool.h>

/* The most bytes that one queue stores, and those from which on it stores programs in the short form. */
#define SAMPLE_QUEUE_MAX (128u << 20)
#define SAMPLE_QUEUE_PROGRAMS (32u << 20)

struct sample_queue {
	bool programs; /* samples of programs are stored whole, too; false after sample_queue_init() */
	/* records, each at a multiple of 8; the layout is private to sample_queue.c */
	struct buf bytes;
};

/* Initializes an empty queue. It cannot fail. */
void sample_queue_init(struct sample_queue *h);
/* Frees all stored samples without reporting them. */
void sample_queue_deinit(struct sample_queue *h);
/*
 * Stores a copy of *s. Returns false if the queue has SAMPLE_QUEUE_MAX bytes or memory is
 * exhausted; the queue is then unchanged. A sample outside of the kernel's half of the address
 * space is stored without its stack, its code bytes and most of its registers, unless h->programs is set
 * and the queue has less than SAMPLE_QUEUE_PROGRAMS bytes.
 */
bool sample_queue_add(struct sample_queue *h, const struct sample *s);
/*
 * Calls take() for each stored sample, oldest first, and then empties the queue. The sample is
 * valid during the call only. take() must not modify *h.
 */
void sample_queue_release(struct sample_queue *h, void (*take)(void *ctx, const struct sample *s),
			  void *ctx);

#endif

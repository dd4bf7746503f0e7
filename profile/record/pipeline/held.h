/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * held: a queue of samples that wait until the place of the kernel is known, in the order in which
 * they were added.
 *
 * Not thread-safe: all calls come from the consumer thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_PIPELINE_HELD_H
#define KVMPROF_PROFILE_RECORD_PIPELINE_HELD_H

#include "base/buf.h"
#include "base/sample.h"

#include <stdbool.h>

/* The most bytes that one queue stores. */
#define HELD_MAX (128u << 20)

struct held {
	struct buf bytes; /* records, each at a multiple of 8; the layout is private to held.c */
};

/* Initializes an empty queue. It cannot fail. */
void held_init(struct held *h);
/* Frees all stored samples without reporting them. */
void held_deinit(struct held *h);
/*
 * Stores a copy of *s. Returns false if the queue has HELD_MAX bytes or memory is exhausted; the
 * queue is then unchanged. A sample outside of the kernel's half of the address space is stored
 * without its stack, its code bytes and most of its registers.
 */
bool held_add(struct held *h, const struct sample *s);
/*
 * Calls take() for each stored sample, oldest first, and then empties the queue. The sample is
 * valid during the call only. take() must not modify *h.
 */
void held_release(struct held *h, void (*take)(void *ctx, const struct sample *s), void *ctx);

#endif

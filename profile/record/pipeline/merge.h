/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * merge: the samples of all rings in the order of their times.
 *
 * A heap contains the first sample of each ring that has one. A ring that was empty at some moment
 * can contain no sample from before that moment, except for one that was being written; it is
 * polled again when the next sample is later than that moment. Taking a sample therefore does not
 * cost a poll of each ring.
 *
 * All functions are called by the rings' consumer thread only; merge_create() and merge_destroy()
 * may be called by another thread while that thread does not run.
 */
#ifndef KVMPROF_PROFILE_RECORD_PIPELINE_MERGE_H
#define KVMPROF_PROFILE_RECORD_PIPELINE_MERGE_H

#include "base/ring.h"
#include "base/sample.h"

struct merge;

/* Returns ring i; called once for each i < n by merge_create(). */
typedef struct ring *(*merge_ring)(void *ctx, unsigned int i);
/*
 * Creates a merger of n rings, which must outlive it. Returns NULL if out of memory. The caller
 * frees it with merge_destroy().
 */
struct merge *merge_create(merge_ring ring, void *ctx, unsigned int n);
/* Frees m. NULL is allowed. The rings are unchanged. */
void merge_destroy(struct merge *m);

/*
 * Returns the oldest sample, or NULL if all rings are empty. The sample stays in its ring, valid
 * and the next one, until merge_release(). Samples that arrive meanwhile may be older.
 */
const struct sample *merge_next(struct merge *m);
/*
 * Prefetches a part of the sample after the next one into the cache, while the caller still unwinds
 * the next one: another processor wrote its bytes. The caller calls this a few times for each
 * sample.
 */
void merge_prefetch(struct merge *m);
/* Removes the sample that merge_next() returned from its ring. Its memory is no longer valid. */
void merge_release(struct merge *m);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * merge: the samples of all rings in the order of their times.
 *
 * The heads of the rings that have a sample are in a heap. A ring that was empty at a moment
 * can have no sample from before it, but for one that was just being written: it is looked at
 * again when the next sample is later than that moment. So it does not cost a look at
 * each ring to take a sample. Used by the rings' consumer alone.
 */
#ifndef KVMPROF_PROFILE_RECORD_PIPELINE_MERGE_H
#define KVMPROF_PROFILE_RECORD_PIPELINE_MERGE_H

#include "base/ring.h"
#include "base/sample.h"

struct merge;

/* ring(ctx, i) with i < n is one of them each time that it is asked for. NULL: no memory. */
typedef struct ring *(*merge_ring)(void *ctx, unsigned int i);
struct merge *merge_create(merge_ring ring, void *ctx, unsigned int n);
void merge_destroy(struct merge *m);

/* The oldest sample; it stays the next one until merge_release(). NULL: all rings are empty. */
const struct sample *merge_next(struct merge *m);
/*
 * The bytes of the sample behind it were written by another processor, and can come while this one
 * is unwound: asks for some more of them. To be called a few times between two samples.
 */
void merge_prefetch(struct merge *m);
/* Give back the one that merge_next() returned. */
void merge_release(struct merge *m);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * held: samples that wait until it is known where the kernel is, in their order. One thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_PIPELINE_HELD_H
#define KVMPROF_PROFILE_RECORD_PIPELINE_HELD_H

#include "base/buf.h"
#include "base/sample.h"

#include <stdbool.h>

/* So many bytes at most. */
#define HELD_MAX (128u << 20)

struct held {
	struct buf bytes; /* each sample at a multiple of 8 */
};

void held_init(struct held *h);
void held_deinit(struct held *h);
/* A copy of s. false: there is no room. */
bool held_add(struct held *h, const struct sample *s);
/* Each of them, the oldest first; then there is none. take() may change nothing of h. */
void held_release(struct held *h, void (*take)(void *ctx, const struct sample *s), void *ctx);

#endif

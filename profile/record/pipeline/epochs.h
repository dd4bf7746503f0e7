/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * epochs: the guests that one machine had, a kernel each, and the samples whose kernel is not known yet.
 *
 * A sample that proves nothing waits for the next one that does: see guest_epoch(). On the consumer's thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_PIPELINE_EPOCHS_H
#define KVMPROF_PROFILE_RECORD_PIPELINE_EPOCHS_H

#include "base/err.h"
#include "profile/record/guest/guest.h"
#include "profile/record/guest/target.h"
#include "profile/record/pipeline/held.h"

#include <stdint.h>

#define EPOCHS_MAX 32u /* kernels; the samples of further ones are counted as lost */
/* Firmware and a boot loader that waits for a key take seconds. */
#define EPOCHS_WAIT_NS UINT64_C(20000000000)

/* A kernel that ran, for the summary. */
struct epoch_facts {
	char release[65]; /* "" if it is not known */
	uint64_t from_ns; /* the time of its first sample; of the first kernel 0 */
	uint64_t samples; /* processed while it was the one that runs */
};

struct epochs {
	struct guest *before[EPOCHS_MAX];  /* owned; the sink has their symbols */
	struct target *target[EPOCHS_MAX]; /* owned; of the guest after before[i] */
	unsigned int n;
	struct held doubt;
	uint64_t doubt_ns; /* the time of the first sample in doubt; 0: there is none */
};

void epochs_init(struct epochs *x);
void epochs_deinit(struct epochs *x);

/* Returns whether another kernel can follow. */
bool epochs_have_room(const struct epochs *x);
/*
 * Finishes *g and replaces it by the guest of the next kernel, which knows nothing yet. On failure *g stays. Returns 0, or
 * what the sink returned, or -ENOMEM.
 */
int epochs_next(struct epochs *x, struct guest **g, struct err *e);

/* Keeps a copy of a sample in doubt. Returns false if there is no room, or the first one has waited for EPOCHS_WAIT_NS. */
bool epochs_hold(struct epochs *x, const struct sample *s);
/* Hands all samples in doubt to take(), the oldest first; then there is none. */
void epochs_release(struct epochs *x, void (*take)(void *ctx, const struct sample *s), void *ctx);

#endif

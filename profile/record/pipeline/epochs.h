/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * epochs: the guests of one machine, one for each kernel that ran in it, and the samples whose
 * kernel is not known yet.
 *
 * A sample that does not prove which kernel runs waits for the next one that does (see
 * guest_epoch()). All functions are called by the consumer thread only; epochs_deinit() may also be
 * called after that thread has ended.
 */
#ifndef KVMPROF_PROFILE_RECORD_PIPELINE_EPOCHS_H
#define KVMPROF_PROFILE_RECORD_PIPELINE_EPOCHS_H

#include "base/err.h"
#include "profile/record/guest/guest.h"
#include "profile/record/guest/target.h"
#include "profile/record/pipeline/sample_queue.h"

#include <stdint.h>

#define EPOCHS_MAX 32u /* kernels; the samples of later kernels are counted as lost */
/*
 * The longest time that samples wait for a proof, in ns. Firmware and a boot loader that waits for
 * a key take seconds.
 */
#define EPOCHS_WAIT_NS UINT64_C(20000000000)

/* A kernel that ran, for the summary. */
struct epoch_facts {
	char release[65]; /* "" if unknown */
	uint64_t from_ns; /* time of its first sample; 0 for the first kernel */
	uint64_t samples; /* samples processed while this kernel was the current one */
};

struct epochs {
	/* earlier guests, owned; the sink reads their symbols until its end() */
	struct guest *before[EPOCHS_MAX];
	/* owned; target[i] belongs to the guest that followed before[i] */
	struct target *target[EPOCHS_MAX];
	unsigned int n;
	/* samples whose kernel is not known yet, oldest first */
	struct sample_queue doubt;
	uint64_t doubt_ns; /* time of the first sample in `doubt`; 0 if it is empty */
};

/* Initializes *x without an earlier guest and without a sample. It cannot fail. */
void epochs_init(struct epochs *x);
/*
 * Frees the samples that wait, and destroys the guests and targets that *x owns. The current guest
 * is not among them.
 */
void epochs_deinit(struct epochs *x);

/* Returns whether there is room for the guest of another kernel. */
bool epochs_have_room(const struct epochs *x);
/*
 * Finishes *g with guest_finish() and replaces it by a new guest for the next kernel, of which
 * nothing is known yet. *x then owns the old guest; the caller owns the new one in *g, which it
 * frees with guest_destroy() before epochs_deinit(). Requires epochs_have_room(). Returns 0, or an
 * error of guest_finish() or guest_create_later(); *g is unchanged on failure.
 */
int epochs_next(struct epochs *x, struct guest **g, struct err *e);

/*
 * Stores a copy of a sample whose kernel is not known. Returns false, without storing it, if there
 * is no memory for it, if SAMPLE_QUEUE_MAX bytes are stored, or if the first sample has waited for
 * longer than EPOCHS_WAIT_NS.
 */
bool epochs_hold(struct epochs *x, const struct sample *s);
/*
 * Calls take() for each stored sample, oldest first, and then discards them all. take() must not
 * call a function of *x.
 */
void epochs_release(struct epochs *x, void (*take)(void *ctx, const struct sample *s), void *ctx);

#endif

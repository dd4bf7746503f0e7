/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * exact_words: what QEMU says beside its stops: console, monitor, standard error, counts.
 *
 * QEMU may be in the guest's hands: each is bounded, in a row and in all. On the consumer's thread.
 */
#ifndef KVMPROF_VMM_EXACT_EXACT_WORDS_H
#define KVMPROF_VMM_EXACT_EXACT_WORDS_H

#include "base/err.h"
#include "vmm/exact/exact_state.h"

#include <poll.h>

/* Shows what the guest has written to its console since the last sample. */
void exact_tell_console(struct exact *x);

/*
 * Takes what has come on QEMU's console, monitor and standard error, by their revents. -EMSGSIZE, -ENOMEM: QEMU
 * fills what it must not.
 */
int exact_take_words(struct exact *x, const struct pollfd *console, const struct pollfd *monitor,
		     const struct pollfd *errors, struct err *e);

/*
 * The plugin writes what it has counted when QEMU ends by itself: waits until it has ended, a minute at most, and not much
 * longer than a second once a signal has come. Nothing is counted from now on.
 */
void exact_let_counts_be_written(struct exact *x);

#endif

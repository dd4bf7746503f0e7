/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * exact_words: reads QEMU's output other than its stops: console, monitor, standard error, counts.
 *
 * The guest may have taken over QEMU, so each source is limited per call and in total. All
 * functions run on the consumer's thread.
 */
#ifndef KVMPROF_VMM_EXACT_EXACT_WORDS_H
#define KVMPROF_VMM_EXACT_EXACT_WORDS_H

#include "base/err.h"
#include "vmm/exact/exact_state.h"

#include <poll.h>

/* Passes the guest's console output since the last sample to cfg.console. */
void exact_forward_console(struct exact *x);

/*
 * Reads what is available on QEMU's console, monitor and standard error, as their revents
 * indicate. Returns 0; -EMSGSIZE if QEMU writes more than the limits allow, or -ENOMEM, both with
 * *e set.
 */
int exact_read_output(struct exact *x, const struct pollfd *console, const struct pollfd *monitor,
		      const struct pollfd *errors, struct err *e);

/*
 * Ends QEMU so that the plugin writes its counts, and waits until QEMU has ended: at most one
 * minute, and at most 1.5 seconds once the run was interrupted. Without cfg.counts it does
 * nothing. Nothing is counted from now on. The caller then ends the process with child_end() in
 * any case.
 */
void exact_finish_counts(struct exact *x);

#endif

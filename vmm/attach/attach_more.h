/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attach_more: finds vCPUs that a machine gets while it is sampled, by a hotplug, or that begin to
 * run later. They are sampled from then on, in places of their own or in that of a vCPU with the
 * same number that has ended. All functions are called by the tracer's thread.
 */
#ifndef KVMPROF_VMM_ATTACH_ATTACH_MORE_H
#define KVMPROF_VMM_ATTACH_ATTACH_MORE_H

#include "vmm/attach/attach_state.h"

/*
 * Searches for such vCPUs if the VMM has started a thread, or if a second has passed since the last
 * search. A thread is stopped only if it runs a guest and its vCPU cannot be seen without a stop.
 */
void attach_more_search(struct attach *a);
/* Handles the stop of a thread that attach_more_search() has asked to stop, if it has stopped. */
void attach_more_handle_stop(struct attach *a);
/* Detaches from that thread, because this process is about to be stopped. */
void attach_more_suspend(struct attach *a);
/* Frees the memory of the searches, and detaches from that thread. */
void attach_more_close(struct attach *a);

/*
 * Makes BPF, if it is used, sample all vCPUs. Returns 0, also if BPF is given up, with the reason
 * in the facts; or a negative error if the user demanded BPF.
 */
int attach_configure_peek(struct attach *a, struct err *e);
/*
 * Stores *why in the facts as the reason why BPF is not used. Returns 0, or the negative error of
 * *why if the user demanded BPF.
 */
int attach_disable_peek(struct attach *a, const struct err *why, struct err *e);

#endif

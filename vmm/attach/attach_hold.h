/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attach_hold: which threads run the vCPUs, and where the memory of the machine lies.
 *
 * All functions are called by the tracer's thread.
 */
#ifndef KVMPROF_VMM_ATTACH_ATTACH_HOLD_H
#define KVMPROF_VMM_ATTACH_ATTACH_HOLD_H

#include "vmm/attach/attach_state.h"

/*
 * Hold the threads that run vCPUs, map the pages that KVM shares, find the memory: 0, or a
 * negative error. attach_release() undoes it, also what was done before an error.
 */
int attach_hold(struct attach *a, struct err *e);
void attach_release(struct attach *a);
/*
 * Lets a thread go that is no vCPU. Returns true if it does not stop for that now: then it is let go at
 * its next stop.
 */
bool attach_release_thread(struct attach *a, struct tracee *t);
/* Threads that are no vCPUs and could not be let go at once. */
void attach_handle_strays(struct attach *a);

/*
 * Ask for registers in vCPU i's page from now on. -ENOTSUP: the VMM uses it in a way that does
 * not help.
 */
int attach_begin_page(struct attach *a, unsigned int i, struct err *e);

/* A VMM that was followed: lets the vCPUs begin, which attach_hold() holds in front of their first KVM_RUN. */
void attach_release_followed(struct attach *a);
/*
 * The same as attach_hold() for another machine that the process runs now. Memory is taken as KVM has it, or is unknown until
 * attach_find_memory_again() finds it.
 */
int attach_hold_next(struct attach *a, struct err *e);
/* Reports where memory lies to all that read it. */
void attach_publish_memory(struct attach *a);
/* Looks for the memory again by the fresh registers of vCPU i, until they agree with it. */
void attach_find_memory_again(struct attach *a, unsigned int i);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attach_hold: finds the threads that run the vCPUs, and the machine's memory.
 *
 * All functions are called by the tracer's thread.
 */
#ifndef KVMPROF_VMM_ATTACH_ATTACH_HOLD_H
#define KVMPROF_VMM_ATTACH_ATTACH_HOLD_H

#include "vmm/attach/attach_state.h"

/*
 * Seizes the threads that run vCPUs, maps the pages of registers that KVM shares, and finds guest
 * memory. Returns 0 or a negative error: -EBUSY if no vCPU runs or another process traces a thread,
 * -ENOTSUP if the machines of the process cannot be told apart or a page is in use, -ENOTUNIQ or
 * -ENOENT if a->cfg.machine selects none of them, or an error of slots_find(). attach_release()
 * undoes it, also what was done before an error.
 */
int attach_hold(struct attach *a, struct err *e);
/* Withdraws the requests for registers, unmaps the pages, and detaches from all threads. */
void attach_release(struct attach *a);
/*
 * Detaches from a thread that is not a vCPU. Returns true if the thread does not stop for that now.
 * It is then in a->stray, and is detached from at its next stop.
 */
bool attach_release_thread(struct attach *a, struct tracee *t);
/* Detaches from those threads in a->stray that have stopped meanwhile. */
void attach_handle_strays(struct attach *a);

/*
 * Requests registers in vCPU i's page from now on. Returns 0, or -ENOTSUP if the VMM requests only
 * some of the registers in it itself.
 */
int attach_begin_page(struct attach *a, unsigned int i, struct err *e);

/*
 * Resumes the vCPUs of a VMM that was followed (a->cfg.follows), which attach_hold() holds before
 * their first KVM_RUN. Does nothing for another VMM.
 */
void attach_release_followed(struct attach *a);
/*
 * Does the same as attach_hold() for another machine that the process runs now, and with the same
 * errors. It takes guest memory from KVM's slots without a proof. If they cannot be read, the
 * memory stays unknown until attach_find_memory_again() finds it.
 */
int attach_hold_next(struct attach *a, struct err *e);
/* Passes the location of guest memory to the consumer, to BPF and to cfg.memory_changed(). */
void attach_publish_memory(struct attach *a);
/*
 * Searches for guest memory by the fresh registers of vCPU i, at most every 10 ms, until registers
 * have proven it. Publishes the result of each search.
 */
void attach_find_memory_again(struct attach *a, unsigned int i);

#endif

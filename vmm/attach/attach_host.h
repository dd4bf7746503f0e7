/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attach_host: samples all of a vCPU thread's time, including the host's side, for the event host.
 *
 * While the thread is on a processor, a counter of its CPU time is used. At an overflow the kernel
 * sends a signal to the thread itself, which stops at once because it is traced. While it is off
 * the processor, its state is read at deadlines of wall-clock time (attach_look.h). The weights add
 * up to the elapsed time, except for the last period. All functions are called by the tracer's
 * thread.
 */
#ifndef KVMPROF_VMM_ATTACH_ATTACH_HOST_H
#define KVMPROF_VMM_ATTACH_ATTACH_HOST_H

#include "vmm/attach/attach_state.h"

/*
 * Opens the counters of all vCPUs, if the event is host; else does nothing. Called while all rights
 * are still there. Returns 0; -ENOTSUP if this host does not account for run and wait times or no
 * signal can be used; or another -errno. attach_host_close() follows in any case.
 */
int attach_host_open(struct attach *a, struct err *e);
/*
 * Opens the counter of vCPU i, whose place may be that of one that has ended. Returns 0 or an error
 * as attach_host_open().
 */
int attach_host_open_one(struct attach *a, unsigned int i, struct err *e);
/* Closes all counters. Does nothing if they are not open. */
void attach_host_close(struct attach *a);

/* Samples vCPU i from time `now` on (CLOCK_MONOTONIC), with the trigger's period. */
void attach_host_begin(struct attach *a, unsigned int i, uint64_t now);
/*
 * Takes the samples of vCPU i that are due at its deadline, at which its thread was seen in state
 * `seen`. Returns false if the thread must be stopped for that.
 */
bool attach_host_look(struct attach *a, unsigned int i, enum attach_seen seen);
/* Takes the samples of vCPU i that are due, and resumes its thread, which is held. */
void attach_host_sample(struct attach *a, unsigned int i);

#endif

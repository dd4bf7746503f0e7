/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attach_host: samples of all of a foreign vCPU thread's time, with the host's side (the event host).
 *
 * On its processor: a counter of the thread's time, whose overflow the kernel signals to the thread itself. It stops
 * there, as it is traced, at the very moment. Off it: at deadlines of wall-clock time it is looked at (attach_look.h). Weights add up to elapsed time, less the last period.
 * The tracer's thread alone.
 */
#ifndef KVMPROF_VMM_ATTACH_ATTACH_HOST_H
#define KVMPROF_VMM_ATTACH_ATTACH_HOST_H

#include "vmm/attach/attach_state.h"

/* While all rights are there. -ENOTSUP, -errno: this host or this VMM does not allow it. attach_host_close() in any case. */
int attach_host_open(struct attach *a, struct err *e);
/* Opens the counter of one vCPU, which may take the place of one that has ended. Errors are those above. */
int attach_host_open_one(struct attach *a, unsigned int i, struct err *e);
void attach_host_close(struct attach *a);

/* vCPU i is sampled from now on, with the trigger's period. */
void attach_host_begin(struct attach *a, unsigned int i, uint64_t now);
/* Its deadline has come, and its thread was seen so: takes what is due. false: it has to be stopped for that. */
bool attach_host_look(struct attach *a, unsigned int i, enum attach_seen seen);
/* It is held: take what is due, and let it go on. */
void attach_host_sample(struct attach *a, unsigned int i);

#endif

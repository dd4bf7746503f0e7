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
 * negative error. attach_let_go() undoes it, also what was done before an error.
 */
int attach_hold(struct attach *a, struct err *e);
void attach_let_go(struct attach *a);
/* Threads that are no vCPUs and could not be let go at once. */
void attach_attend_strays(struct attach *a);

/*
 * Ask for registers in vCPU i's page from now on. -ENOTSUP: the VMM uses it in a way that does
 * not help.
 */
int attach_begin_page(struct attach *a, unsigned int i, struct err *e);

#endif

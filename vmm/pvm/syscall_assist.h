/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * syscall_assist: executes SYSCALL correctly on hosts where it does not change the privilege level.
 *
 * On such a host (quirks.syscall_keeps_cpl) SYSCALL in ring 3 jumps to LSTAR still at CPL 3 and
 * takes a page fault there. A hardware breakpoint on the guest's page-fault handler catches that
 * fault. The frame that it left is converted to the effect of SYSCALL (SDM vol. 2, SYSCALL); a
 * genuine fault is passed on. LSTAR and SFMASK are learnt by filtering writes to them. Only the
 * vCPU's thread calls these functions, unless stated otherwise.
 */
#ifndef KVMPROF_VMM_PVM_SYSCALL_ASSIST_H
#define KVMPROF_VMM_PVM_SYSCALL_ASSIST_H

#include "base/err.h"

#include <stdbool.h>

struct pvm_syscall;
struct vcpu;
struct vm;

/*
 * Makes KVM report writes to LSTAR and SFMASK, as the last step before the vCPUs run. A thread of
 * its own sets the filter, because KVM waits some 20 ms for a grace period with the VM's lock held.
 * Earlier writes are found by reading the MSRs once. Returns 0, or -errno with *e recorded. Called
 * by the thread that starts the machine.
 */
int syscall_assist_start(struct vm *vm, struct err *e);
/* Waits for that thread. Called by the thread that frees the machine, before the VM is closed. */
void syscall_assist_stop(struct vm *vm);

/* Handles KVM_EXIT_X86_WRMSR. Returns true if the access was to LSTAR or SFMASK and is done. */
bool syscall_assist_wrmsr(struct vcpu *v);

/* Makes the next exit show whether an interrupt waits for delivery. Called before each KVM_RUN. */
void syscall_assist_enter(struct vcpu *v);

/*
 * Moves the breakpoint if the guest has installed another page-fault handler. Called at each
 * sample.
 */
void syscall_assist_refresh(struct vcpu *v);

/*
 * Restores the state from a snapshot, before the first entry: the guest's kernel has installed its
 * handlers already, and none of its writes will be seen. vcpu_state restores LSTAR and SFMASK with
 * the other MSRs. Returns 0, or -errno with *e recorded.
 */
int syscall_assist_restore(struct vcpu *v, const struct pvm_syscall *from, struct err *e);

/*
 * Handles the breakpoint on the page-fault handler. Returns 0 if the guest can continue, or -errno
 * with *e recorded.
 */
int syscall_assist_debug(struct vcpu *v, struct err *e);

#endif

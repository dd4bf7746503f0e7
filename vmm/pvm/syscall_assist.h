/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * syscall_assist: SYSCALL on hosts where it does not change the privilege level.
 *
 * On such a host (quirks.syscall_keeps_cpl) SYSCALL in ring 3 jumps to LSTAR
 * still at CPL 3 and takes a page fault there. A hardware breakpoint on the
 * guest's page-fault handler shows us that fault; the frame it left is turned
 * into what SYSCALL would have done (SDM vol. 2, SYSCALL), and a genuine fault
 * is let through. LSTAR and SFMASK are learnt by filtering writes to them.
 */
#ifndef KVMPROF_VMM_PVM_SYSCALL_ASSIST_H
#define KVMPROF_VMM_PVM_SYSCALL_ASSIST_H

#include "base/err.h"

#include <stdbool.h>

struct pvm_syscall;
struct vcpu;
struct vm;

/*
 * Last thing before the vCPUs run: have KVM report writes to LSTAR and SFMASK.
 * The filter is set on a thread of its own, because KVM waits some 20 ms for a
 * grace period there, with the VM's lock held; a write that comes earlier is
 * found by reading the MSRs once.
 */
int syscall_assist_start(struct vm *vm, struct err *e);
/* Wait for that thread; before the VM is closed. */
void syscall_assist_stop(struct vm *vm);

/* KVM_EXIT_X86_WRMSR: true when it was one of ours and is done. */
bool syscall_assist_wrmsr(struct vcpu *v);

/* Before each KVM_RUN: make the next exit tell whether an interrupt waits for delivery. */
void syscall_assist_enter(struct vcpu *v);

/* At each sample: follow the guest when it installs another page-fault handler. */
void syscall_assist_refresh(struct vcpu *v);

/*
 * From a snapshot, before the first entry: its kernel has installed its handlers already, and no
 * write of theirs will be seen. LSTAR and SFMASK are among the MSRs that vcpu_state restores.
 * 0, or a negative error.
 */
int syscall_assist_restore(struct vcpu *v, const struct pvm_syscall *from, struct err *e);

/* The breakpoint on the page-fault handler was reached: 0 when the guest can go on. */
int syscall_assist_debug(struct vcpu *v, struct err *e);

#endif

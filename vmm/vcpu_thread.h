/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vcpu_thread: services of a vCPU's thread: its identity, leaving KVM_RUN, its registers, and the
 * account of its time (base/account.h).
 */
#ifndef KVMPROF_VMM_VCPU_THREAD_H
#define KVMPROF_VMM_VCPU_THREAD_H

#include "base/account.h"

#include <signal.h>
#include <stdint.h>

struct vcpu;
struct vm;

/* The signal that makes KVM_RUN return: sent by the vCPU's own timer, or to stop it. */
#define VCPU_KICK_SIGNAL SIGRTMIN

/* Returns the vCPU that the calling thread runs; NULL: none. Async-signal-safe. */
struct vcpu *vcpu_current(void);
/* Makes the calling thread that of v. */
void vcpu_set_current(struct vcpu *v);
/* Makes KVM_RUN of v return. Any thread may call it. */
void vcpu_kick(struct vcpu *v);
/*
 * Fills run->s.regs after KVM_RUN, if KVM has not done so. Ends the machine if KVM refuses. Called
 * by the vCPU's thread.
 */
void vcpu_fetch_regs(struct vcpu *v);

/*
 * Opens the files from which the vCPU thread's time is read. The vCPU's thread calls this and
 * the next four functions.
 */
void vcpu_account_open(struct vcpu *v);
/* Begins the account at now_ns (CLOCK_MONOTONIC, the present). */
void vcpu_account_begin(struct vcpu *v, uint64_t now_ns);
/* Begins the span `next` at now_ns (CLOCK_MONOTONIC, the present). */
void vcpu_account(struct vcpu *v, enum account_span next, uint64_t now_ns);
/* Updates the account to the present, and closes the schedstat file. */
void vcpu_account_end(struct vcpu *v);
/* Updates the account with the processor time up to now_ns, without ending the span. */
void vcpu_account_update(struct vcpu *v, uint64_t now_ns);

/*
 * Copies the consistent account of a vCPU's thread, as of its last update. Only for machines of
 * this process. Any thread may call it.
 */
void vm_account(const struct vm *vm, unsigned int vcpu, struct account *out);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vcpu_thread: what is asked of a vCPU's thread: which it is, that it leaves KVM_RUN, its registers, and where its time
 * went (base/account.h).
 */
#ifndef KVMPROF_VMM_VCPU_THREAD_H
#define KVMPROF_VMM_VCPU_THREAD_H

#include "base/account.h"

#include <signal.h>
#include <stdint.h>

struct vcpu;
struct vm;

/* The signal that makes KVM_RUN return: from the vCPU's own timer, or to stop it. */
#define VCPU_KICK_SIGNAL SIGRTMIN

/* Returns the vCPU whose thread this is; NULL: none. */
struct vcpu *vcpu_current(void);
/* Makes this thread that of v. */
void vcpu_set_current(struct vcpu *v);
/* Makes KVM_RUN return. Any thread. */
void vcpu_kick(struct vcpu *v);
/* On its thread, after KVM_RUN: have run->s.regs filled. Ends the machine where KVM refuses. */
void vcpu_fetch_regs(struct vcpu *v);

/*
 * On the vCPU's thread: where its time goes from now_ns on, a moment that has just been.
 */
void vcpu_account_open(struct vcpu *v);
void vcpu_account_begin(struct vcpu *v, uint64_t now_ns);
void vcpu_account(struct vcpu *v, enum account_span next, uint64_t now_ns);
void vcpu_account_end(struct vcpu *v);
/* Notes what it had of a processor up to now_ns; the span goes on. */
void vcpu_account_look(struct vcpu *v, uint64_t now_ns);

/* Where its thread's time went (account.h), of one moment: as of its last exit. Of our own machine. */
void vm_account(const struct vm *vm, unsigned int vcpu, struct account *out);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pause: all vCPUs of a machine stand still between two instructions.
 *
 * A vCPU stops only where KVM_RUN was interrupted, so that an access of its to a device
 * is complete, and its registers with it.
 */
#ifndef KVMPROF_VMM_PAUSE_H
#define KVMPROF_VMM_PAUSE_H

#include "base/err.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct vcpu;
struct vm;

struct pause {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	atomic_bool asked;
	unsigned int standing; /* vCPUs, under lock */
};

void pause_init(struct pause *p);
void pause_deinit(struct pause *p);

/* On a vCPU's thread, before it enters: the next KVM_RUN shall return at once if asked for. */
void pause_enter(struct vcpu *v);
/* ... and after KVM_RUN was interrupted: stand as long as it is asked for. */
void pause_stand(struct vcpu *v);
/* Ask for it without waiting; any thread, a vCPU's too. */
void pause_ask(struct vm *vm);
/* The machine ends: wake all vCPUs that are paused, and vm_pause(). */
void pause_end(struct vm *vm);

#endif

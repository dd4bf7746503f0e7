/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * control: what may be changed while a machine runs, or is sampled.
 *
 * A change holds from each vCPU's next look at it, which a signal brings about at once.
 */
#ifndef KVMPROF_VMM_CONTROL_H
#define KVMPROF_VMM_CONTROL_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct vcpu;
struct vm;

void vm_control_init(struct vm *vm);
/* Something has changed that vCPUs follow: make them look. */
void vm_control_tell(struct vm *vm);

/* -- any thread ---------------------------------------------------------------------- */

/* Take samples, or let periods end without one. */
void vm_collect(struct vm *vm, bool on);
bool vm_is_collecting(const struct vm *vm);
/* Collects samples of one vCPU, which takes them when both say so. */
void vm_collect_vcpu(struct vm *vm, unsigned int vcpu, bool on);
bool vm_vcpu_is_collecting(const struct vm *vm, unsigned int vcpu);
/* Arm or disarm what ends an event's periods. */
void vm_arm_event(struct vm *vm, unsigned int event, bool on);
bool vm_event_is_armed(const struct vm *vm, unsigned int event);
/* In the event's unit, also for one that had a rate (counter.freq); 0 is not taken. */
void vm_set_period(struct vm *vm, unsigned int event, uint64_t period);
uint64_t vm_period(const struct vm *vm, unsigned int event);
/* Bytes of one stack that are copied; no more than the capture plan had at the start. */
void vm_set_stack_max(struct vm *vm, uint32_t bytes);

/*
 * All vCPUs stand still between two instructions when it returns, until vm_resume() or
 * the end. The time is lost to samples. -ECANCELED: the machine has ended instead.
 * One thread at a time.
 */
int vm_pause(struct vm *vm, struct err *e);
void vm_resume(struct vm *vm);

/* -- the vCPUs' threads: they stop only where KVM_RUN was interrupted, so that an access to a device is complete ---- */

/* Lets the next KVM_RUN return at once if a pause is asked for. Called before a vCPU enters. */
void vm_pause_enter(struct vcpu *v);
/* Stops the vCPU as long as a pause is asked for. Called after KVM_RUN was interrupted. */
void vm_pause_stand(struct vcpu *v);
/* Requests a pause without waiting for it; any thread. */
void vm_pause_ask(struct vm *vm);
/* Handles a reset by the guest, on vCPU v if that is known: the end, unless the machine starts anew (vm_config.reboots). */
void vm_reset_ask(struct vm *vm, const struct vcpu *v);

#endif

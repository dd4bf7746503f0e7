/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * control: changes settings while a machine runs or is sampled.
 *
 * A vCPU applies a change when it next checks the settings; a signal makes it check at once. Any
 * thread may call the functions up to vm_resume(), and the functions below it where stated.
 */
#ifndef KVMPROF_VMM_CONTROL_H
#define KVMPROF_VMM_CONTROL_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct vcpu;
struct vm;

/* Sets the initial state from vm->cfg. Called once, when the machine is created. */
void vm_control_init(struct vm *vm);
/* Makes all vCPUs check the settings. Any thread may call it. */
void vm_control_notify(struct vm *vm);

/* -- any thread ---------------------------------------------------------------------- */

/* Starts or stops collecting samples. Periods end without a sample while nothing is collected. */
void vm_collect(struct vm *vm, bool on);
/* Returns whether samples are collected. */
bool vm_is_collecting(const struct vm *vm);
/*
 * Starts or stops collecting samples of one vCPU. A sample is taken only if vm_collect() is on as
 * well.
 */
void vm_collect_vcpu(struct vm *vm, unsigned int vcpu, bool on);
/* Returns whether samples of this vCPU are collected, regardless of vm_collect(). */
bool vm_vcpu_is_collecting(const struct vm *vm, unsigned int vcpu);
/* Arms or disarms an event. No periods of a disarmed event end. */
void vm_arm_event(struct vm *vm, unsigned int event, bool on);
/* Returns whether the event is armed. */
bool vm_event_is_armed(const struct vm *vm, unsigned int event);
/*
 * Sets the period in the event's unit, also for an event that had a rate (counter.freq). A period
 * of 0 is ignored.
 */
void vm_set_period(struct vm *vm, unsigned int event, uint64_t period);
/* Returns the period in the event's unit. */
uint64_t vm_period(const struct vm *vm, unsigned int event);
/*
 * Sets the maximum bytes of one stack that are copied, rounded down to a multiple of 8 and at most
 * plan.stack_max.
 */
void vm_set_stack_max(struct vm *vm, uint32_t bytes);

/*
 * Stops all vCPUs between two instructions and waits until they are stopped; they stay so until
 * vm_resume() or the end of the machine. No sample represents this time. Returns 0; -ECANCELED if
 * the machine has ended instead; -ENOTSUP for a machine of another process. Only one thread at a
 * time may use vm_pause().
 */
int vm_pause(struct vm *vm, struct err *e);
/* Lets the vCPUs continue after vm_pause(). */
void vm_resume(struct vm *vm);

/*
 * -- vCPU threads; they stop only after an interrupted KVM_RUN, when accesses to devices are
 * complete --
 */

/*
 * Makes the next KVM_RUN return at once if a pause is requested. Called by the vCPU's thread before
 * KVM_RUN.
 */
void vm_pause_enter(struct vcpu *v);
/*
 * Blocks while a pause is requested, and restarts the vCPU's periods afterwards. Called by the
 * vCPU's thread after KVM_RUN was interrupted.
 */
void vm_pause_wait(struct vcpu *v);
/* Requests a pause without waiting for it. Any thread may call it. */
void vm_pause_request(struct vm *vm);
/*
 * Handles a reset by the guest on vCPU v (NULL: unknown): ends the machine, or requests a restart
 * if the machine has vm_config.reboots. Any thread may call it.
 */
void vm_reset_request(struct vm *vm, const struct vcpu *v);

#endif

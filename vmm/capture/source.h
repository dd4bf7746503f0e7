/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * source: the events of one vCPU. All functions are called on its own thread, but for
 * source_signalled().
 */
#ifndef KVMPROF_VMM_CAPTURE_SOURCE_H
#define KVMPROF_VMM_CAPTURE_SOURCE_H

#include "base/err.h"
#include "vmm/machine_parts.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct capture_cause;
struct kvm_run;
struct vcpu;

/* Opens the counters of events. Called before the thread's system calls are filtered. */
void source_open_all(struct vcpu *v);
int source_start_all(struct vcpu *v, struct err *e);
void source_stop_all(struct vcpu *v);
/* In the signal handler: which event is it that the signal stands for? */
void source_signalled(struct vcpu *v, const siginfo_t *info);
/* KVM_RUN was interrupted, so the registers are complete: take the samples that are due. */
void source_take_all(struct vcpu *v);
/* The period of a timer has ended. */
void source_take_timer(struct vcpu *v, unsigned int i, uint64_t now);
/* Control has changed: follow it. */
void source_follow_all(struct vcpu *v);

/* For source_host.c. Takes a sample, or counts it as lost and returns false: the caller then keeps its weight. */
bool source_sample_own(struct vcpu *v, struct source *s, const struct capture_cause *cause);
int source_arm_counter(struct vcpu *v, unsigned int i, struct err *e);
/* The exit that it shows, as sample_host.exit has it, and its port or address. */
uint8_t source_exit_of(const struct kvm_run *run, uint64_t *addr);

/* VM_EVENT_HOST: less of a period than 1 / this waits for more. */
#define SOURCE_HOST_PART 4u
/* So many lost periods of a counter are caught up with. */
#define SOURCE_HOST_BEHIND 4u

/* Returns the weight of a sample for ended periods, where the thread has had so much of a processor since the last one. */
static inline uint64_t source_host_weight(uint64_t ended, uint64_t there, uint64_t period)
{
	return there < ended || there - ended > SOURCE_HOST_BEHIND * period ? there : ended;
}

#endif

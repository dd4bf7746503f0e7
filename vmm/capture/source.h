/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * source: the events of one vCPU, and the samples at the ends of their periods. All functions are
 * called by the vCPU's own thread; source_signalled() by its signal handler.
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

/*
 * Opens the counters of all events. Called before the thread's system calls are filtered. Errors
 * are stored and reported by source_start_all().
 */
void source_open_all(struct vcpu *v);
/*
 * Starts all armed events. Returns 0, or -errno with *e set; source_stop_all() cleans up in both
 * cases.
 */
int source_start_all(struct vcpu *v, struct err *e);
/* Stops and closes all timers and counters. */
void source_stop_all(struct vcpu *v);
/* Records in the signal handler which event the signal belongs to. Async-signal-safe. */
void source_signalled(struct vcpu *v, const siginfo_t *info);
/* Takes all samples that are due. KVM_RUN has been interrupted, so the registers are complete. */
void source_take_all(struct vcpu *v);
/* Takes the sample of event i if its timer's deadline has passed. */
void source_take_timer(struct vcpu *v, unsigned int i, uint64_t now);
/*
 * Applies changed settings of the run (periods, armed events, stack limit). An error ends the
 * machine.
 */
void source_update_all(struct vcpu *v);

/*
 * Takes a sample, for source_host.c. Returns false and counts it as lost if the ring has no room;
 * the caller then keeps the weight.
 */
bool source_sample_own(struct vcpu *v, struct source *s, const struct capture_cause *cause);
/* Starts the counter of event i, opening it if necessary. Returns 0, or -errno with *e set. */
int source_arm_counter(struct vcpu *v, unsigned int i, struct err *e);
/*
 * Returns the exit in run as sample_host.exit represents it, and stores its port or physical
 * address (else 0) in *addr.
 */
uint8_t source_exit_of(const struct kvm_run *run, uint64_t *addr);

/*
 * VM_EVENT_HOST: off-CPU time shorter than the period / SOURCE_HOST_PART is carried over instead
 * of becoming a sample.
 */
#define SOURCE_HOST_PART 4u
/* A counter that has lost more than this many periods is corrected with the account's time. */
#define SOURCE_HOST_BEHIND 4u

/*
 * Returns the weight of a sample: `ended` ns of ended periods, limited to `there`, the processor
 * time that the thread had since the last sample; or `there` if the counter has lost too many
 * periods.
 */
static inline uint64_t source_host_weight(uint64_t ended, uint64_t there, uint64_t period)
{
	return there < ended || there - ended > SOURCE_HOST_BEHIND * period ? there : ended;
}

#endif

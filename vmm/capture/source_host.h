/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * source_host: VM_EVENT_HOST, all time of a vCPU's thread, with the host's call chain. All
 * functions are called by the vCPU's own thread.
 */
#ifndef KVMPROF_VMM_CAPTURE_SOURCE_HOST_H
#define KVMPROF_VMM_CAPTURE_SOURCE_HOST_H

#include "base/err.h"

#include <stdint.h>

struct trigger_rule;
struct vcpu;

/*
 * Opens KVM's statistics of the vCPU, before it runs. Without statistics, halts count as waiting.
 */
void source_host_prepare(struct vcpu *v);
/* Closes these statistics, after the vCPU has run. */
void source_host_release(struct vcpu *v);
/*
 * Starts event i with its counter and timer. Returns 0, or -errno with *e set; source_stop_all()
 * cleans up.
 */
int source_host_arm(struct vcpu *v, unsigned int i, const struct trigger_rule *rule, struct err *e);
/*
 * Takes the samples of event i that are due at time now (CLOCK_MONOTONIC ns): one on the
 * processor, and those for time off it.
 */
void source_take_host(struct vcpu *v, unsigned int i, uint64_t now);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* source_host: VM_EVENT_HOST, the time of a vCPU's thread with the host's side. */
#ifndef KVMPROF_VMM_CAPTURE_SOURCE_HOST_H
#define KVMPROF_VMM_CAPTURE_SOURCE_HOST_H

#include "base/err.h"

#include <stdint.h>

struct trigger_rule;
struct vcpu;

/* Before the vCPU runs, and afterwards. */
void source_host_prepare(struct vcpu *v);
void source_host_release(struct vcpu *v);
int source_host_arm(struct vcpu *v, unsigned int i, const struct trigger_rule *rule, struct err *e);
void source_take_host(struct vcpu *v, unsigned int i, uint64_t now);

#endif

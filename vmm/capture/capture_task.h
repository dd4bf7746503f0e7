/* SPDX-License-Identifier: GPL-2.0-or-later */
/* capture_task: what a sample has of the running task. */
#ifndef KVMPROF_VMM_CAPTURE_CAPTURE_TASK_H
#define KVMPROF_VMM_CAPTURE_CAPTURE_TASK_H

#include "base/capture_plan.h"

#include <stdbool.h>
#include <stdint.h>

struct capture_view;
struct kvm_sregs;
struct sample;
struct vcpu;
struct vm;

/*
 * The run-time address of what was linked at addr; 0 when it is not known yet.
 * capture_address() is for what the plan has: with percpu it lies at addr from the kernel's
 * GS base.
 */
uint64_t capture_linked_address(const struct vcpu *v, uint64_t addr);
uint64_t capture_address(const struct vcpu *v, uint64_t addr, bool percpu, uint64_t gs);
/* Returns where the plan's pointer to the current task lies; 0 when it is not known yet. */
uint64_t capture_current_address(const struct vcpu *v, const struct capture_task_plan *plan,
				 uint64_t gs);
/* The kernel's GS base at any instruction, in entry code too. Fills s->lstar as well. */
uint64_t capture_percpu_base(struct vcpu *v, const struct kvm_sregs *sr, struct sample *s);
/* Returns the newest plan for tasks. Any thread. */
const struct capture_task_plan *capture_plan_of_task(const struct vm *vm);
void capture_task(const struct vcpu *v, const struct capture_view *w, uint64_t gs,
		  struct sample *s);
/*
 * Its return addresses that were replaced: by the function graph tracer, with one entry beyond,
 * the last that it has taken from there; and by probes. Needs room for SAMPLE_MAX_RETURNS bytes.
 */
void capture_returns(const struct vcpu *v, const struct capture_view *w, struct sample *s);

#endif

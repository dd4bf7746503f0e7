/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capture_task: copies the facts of the running task into a sample.
 *
 * All functions except capture_plan_of_task() are called by the thread that has stopped the vCPU.
 * They neither allocate nor block.
 */
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
 * Returns the runtime address of a kernel address as linked, or 0 if the kernel's slide is not
 * known yet.
 */
uint64_t capture_linked_address(const struct vcpu *v, uint64_t addr);
/*
 * Returns the runtime address of an address of the plan. With percpu it is relative to the kernel's
 * GS base gs, and 0 if that is 0 (with one exception at boot, see address_on_vcpu()). Returns 0 as
 * capture_linked_address().
 */
uint64_t capture_address(const struct vcpu *v, uint64_t addr, bool percpu, uint64_t gs);
/* Returns the address of the plan's pointer to the current task, or 0 if it is not known yet. */
uint64_t capture_current_address(const struct vcpu *v, const struct capture_task_plan *plan,
				 uint64_t gs);
/*
 * Returns the kernel's GS base at any instruction, also in entry code, or 0 if it is unknown. Sets
 * s->lstar as well. May query MSRs of the vCPU.
 */
uint64_t capture_percpu_base(struct vcpu *v, const struct kvm_sregs *sr, struct sample *s);
/* Returns the newest plan for tasks, which belongs to vm and never changes. Any thread. */
const struct capture_task_plan *capture_plan_of_task(const struct vm *vm);
/*
 * Fills s->task (and s->mm_changes) with the task that runs, as far as the plan and the guest's
 * memory allow; task.state states which members are known. gs: the kernel's GS base or 0.
 */
void capture_task(const struct vcpu *v, const struct capture_view *w, uint64_t gs,
		  struct sample *s);
/*
 * Copies the task's replaced return addresses into *s: those of the function graph tracer, with
 * one entry above the current ones (the last one that the tracer has removed), and those of
 * probes. s needs room for SAMPLE_MAX_RETURNS bytes.
 */
void capture_returns(const struct vcpu *v, const struct capture_view *w, struct sample *s);

#endif

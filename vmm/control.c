/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * control: what is asked of a running machine by other threads. The vCPUs follow by
 * themselves (source.c): here it is only noted, and they are told to look.
 */
#include "vmm/machine.h"

void control_init(struct vm *vm)
{
	const struct vm_config *cfg = &vm->cfg;

	pause_init(&vm->pause);
	atomic_init(&vm->control.changes, 0);
	atomic_init(&vm->control.collect, !cfg->idle_start);
	atomic_init(&vm->control.stack_max, cfg->plan.stack_max);
	for (unsigned int i = 0; i < VM_MAX_EVENTS; i++) {
		atomic_init(&vm->control.armed[i], i < cfg->nevents);
		atomic_init(&vm->control.period[i], cfg->event[i].period);
	}
	for (unsigned int i = 0; i < vm->nvcpus; i++)
		atomic_init(&vm->vcpu[i].collect, true);
}

void control_tell(struct vm *vm)
{
	atomic_fetch_add_explicit(&vm->control.changes, 1, memory_order_release);
	vm->ops->wake(vm);
}

/* Read when a period ends: no vCPU has to be woken for it. */
void vm_collect(struct vm *vm, bool on)
{
	atomic_store_explicit(&vm->control.collect, on, memory_order_relaxed);
}

bool vm_is_collecting(const struct vm *vm)
{
	return atomic_load_explicit(&vm->control.collect, memory_order_relaxed);
}

void vm_collect_vcpu(struct vm *vm, unsigned int vcpu, bool on)
{
	atomic_store_explicit(&vm->vcpu[vcpu].collect, on, memory_order_relaxed);
}

bool vm_vcpu_is_collecting(const struct vm *vm, unsigned int vcpu)
{
	return atomic_load_explicit(&vm->vcpu[vcpu].collect, memory_order_relaxed);
}

void vm_arm_event(struct vm *vm, unsigned int event, bool on)
{
	atomic_store_explicit(&vm->control.armed[event], on, memory_order_relaxed);
	control_tell(vm);
}

bool vm_event_is_armed(const struct vm *vm, unsigned int event)
{
	return atomic_load_explicit(&vm->control.armed[event], memory_order_relaxed);
}

void vm_set_period(struct vm *vm, unsigned int event, uint64_t period)
{
	if (!period)
		return;
	atomic_store_explicit(&vm->control.period[event], period, memory_order_relaxed);
	control_tell(vm);
}

uint64_t vm_period(const struct vm *vm, unsigned int event)
{
	return atomic_load_explicit(&vm->control.period[event], memory_order_relaxed);
}

void vm_set_stack_max(struct vm *vm, uint32_t bytes)
{
	if (bytes > vm->cfg.plan.stack_max)
		bytes = vm->cfg.plan.stack_max;
	atomic_store_explicit(&vm->control.stack_max, bytes & ~7u, memory_order_relaxed);
	control_tell(vm);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * control: stores settings that other threads change while a machine runs. The vCPUs apply them
 * themselves (source.c); here they are only stored, and the vCPUs are woken to check them.
 */
#include "vmm/control.h"

#include "vmm/capture/source.h"
#include "vmm/machine.h"

#include <errno.h>
#include <sys/ioctl.h>

void vm_control_init(struct vm *vm)
{
	const struct vm_sampling *cfg = &vm->cfg;

	pthread_mutex_init(&vm->pause.lock, NULL);
	pthread_cond_init(&vm->pause.changed, NULL);
	atomic_init(&vm->pause.asked, false);
	vm->pause.standing = 0;
	atomic_init(&vm->control.changes, 0);
	atomic_init(&vm->control.collect, !cfg->idle_start);
	atomic_init(&vm->control.stack_max, cfg->plan.stack_max);
	for (unsigned int i = 0; i < VM_MAX_EVENTS; i++) {
		atomic_init(&vm->control.armed[i], i < cfg->nevents);
		atomic_init(&vm->control.period[i], cfg->event[i].period);
	}
	for (unsigned int i = 0; i < vm->places; i++)
		atomic_init(&vm->vcpu[i].collect, true);
}

void vm_control_notify(struct vm *vm)
{
	atomic_fetch_add_explicit(&vm->control.changes, 1, memory_order_release);
	vm->ops->wake(vm);
}

/* Stores the value. It is read when a period ends, so no vCPU has to be woken. */
void vm_collect(struct vm *vm, bool on)
{
	atomic_store_explicit(&vm->control.collect, on, memory_order_relaxed);
	machine_changed(vm, VM_CHANGED_CONTROL, NULL);
}

bool vm_is_collecting(const struct vm *vm)
{
	return atomic_load_explicit(&vm->control.collect, memory_order_relaxed);
}

void vm_collect_vcpu(struct vm *vm, unsigned int vcpu, bool on)
{
	atomic_store_explicit(&vm->vcpu[vcpu].collect, on, memory_order_relaxed);
	machine_changed(vm, VM_CHANGED_CONTROL, NULL);
}

bool vm_vcpu_is_collecting(const struct vm *vm, unsigned int vcpu)
{
	return atomic_load_explicit(&vm->vcpu[vcpu].collect, memory_order_relaxed);
}

void vm_arm_event(struct vm *vm, unsigned int event, bool on)
{
	atomic_store_explicit(&vm->control.armed[event], on, memory_order_relaxed);
	vm_control_notify(vm);
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
	vm_control_notify(vm);
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
	vm_control_notify(vm);
}

void vm_pause_request(struct vm *vm)
{
	atomic_store(&vm->pause.asked, true);
	vm->ops->wake(vm);
}

void vm_reset_request(struct vm *vm, const struct vcpu *v)
{
	if (!vm->boot) {
		machine_end(vm, VM_END_RESET, v, NULL, NULL);
		return;
	}
	atomic_store(&vm->reset_due, true);
	vm_pause_request(vm);
}

void vm_pause_enter(struct vcpu *v)
{
	if (atomic_load_explicit(&v->vm->pause.asked, memory_order_relaxed))
		v->run->immediate_exit = 1;
}

/*
 * Restarts the periods after a pause, because no sample represents that time. The guest's clock
 * continued meanwhile. KVM_KVMCLOCK_CTRL (api.rst) tells the guest, so that its watchdogs do not
 * report a lockup; it fails for a guest that does not use kvm-clock.
 */
static void restart_sources(struct vcpu *v)
{
	struct err e = { 0 };

	(void)ioctl(v->fd, KVM_KVMCLOCK_CTRL);
	source_stop_all(v);
	if (source_start_all(v, &e) < 0)
		machine_end(v->vm, VM_END_ERROR, v, NULL, &e);
}

void vm_pause_wait(struct vcpu *v)
{
	struct pause *p = &v->vm->pause;

	if (!atomic_load_explicit(&p->asked, memory_order_relaxed))
		return;
	pthread_mutex_lock(&p->lock);
	p->standing++;
	pthread_cond_broadcast(&p->changed);
	while (atomic_load(&p->asked) && !atomic_load(&v->vm->stop))
		pthread_cond_wait(&p->changed, &p->lock);
	p->standing--;
	pthread_mutex_unlock(&p->lock);
	if (!atomic_load(&v->vm->stop))
		restart_sources(v);
}

int vm_pause(struct vm *vm, struct err *e)
{
	struct pause *p = &vm->pause;
	bool stop;

	if (vm->ops->suspend)
		return err_set(e, ENOTSUP, "a machine of another process cannot be paused");
	vm_pause_request(vm);
	pthread_mutex_lock(&p->lock);
	while (p->standing < vm->nvcpus && !atomic_load(&vm->stop))
		pthread_cond_wait(&p->changed, &p->lock);
	stop = atomic_load(&vm->stop);
	pthread_mutex_unlock(&p->lock);
	return stop ? err_set(e, ECANCELED, "the machine ended before it could be stopped") : 0;
}

void vm_resume(struct vm *vm)
{
	struct pause *p = &vm->pause;

	pthread_mutex_lock(&p->lock);
	atomic_store(&p->asked, false);
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
}

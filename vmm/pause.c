/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/pause.h"

#include "vmm/machine.h"

#include <errno.h>
#include <sys/ioctl.h>

void pause_init(struct pause *p)
{
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->changed, NULL);
	atomic_init(&p->asked, false);
	p->standing = 0;
}

void pause_deinit(struct pause *p)
{
	pthread_cond_destroy(&p->changed);
	pthread_mutex_destroy(&p->lock);
}

void pause_ask(struct vm *vm)
{
	atomic_store(&vm->pause.asked, true);
	vm->ops->wake(vm);
}

void pause_end(struct vm *vm)
{
	pthread_mutex_lock(&vm->pause.lock);
	pthread_cond_broadcast(&vm->pause.changed);
	pthread_mutex_unlock(&vm->pause.lock);
}

void pause_enter(struct vcpu *v)
{
	if (atomic_load_explicit(&v->vm->pause.asked, memory_order_relaxed))
		v->run->immediate_exit = 1;
}

/*
 * No sample stands for the time of the pause: periods begin anew. The guest's clock went on
 * meanwhile. KVM_KVMCLOCK_CTRL (api.rst) lets the guest know, so that its watchdogs don't report a
 * lockup; it fails for a guest that does not use kvm-clock.
 */
static void pause_restart_sources(struct vcpu *v)
{
	struct err e = { 0 };

	(void)ioctl(v->fd, KVM_KVMCLOCK_CTRL);
	sources_stop(v);
	if (sources_start(v, &e) < 0)
		machine_end(v->vm, VM_END_ERROR, v, NULL, &e);
}

void pause_stand(struct vcpu *v)
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
		pause_restart_sources(v);
}

int vm_pause(struct vm *vm, struct err *e)
{
	struct pause *p = &vm->pause;
	bool stop;

	if (vm->ops->rest)
		return err_set(e, ENOTSUP, "a machine that somebody else runs can't be stopped");
	pause_ask(vm);
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

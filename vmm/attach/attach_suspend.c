/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/attach_suspend.h"

#include "vmm/attach/attach_hold.h"
#include "vmm/attach/attach_more.h"

#include <errno.h>

static void suspend_set_phase(struct attach *a, enum attach_phase phase)
{
	atomic_store(&a->phase, phase);
	pthread_cond_broadcast(&a->changed);
}

static void suspend_detach(struct attach *a, unsigned int i)
{
	struct tracee *t = &a->tracee[i];
	pid_t tid = t->tid;

	if (t->gone)
		return;
	/* In this order, as in attach_release(). */
	if (a->asks[i])
		regs_page_end(a->page[i]);
	a->asks[i] = false;
	a->facts.signals += t->passed_on;
	while (tracer_detach(t))
		;
	t->tid = tid;
}

/* Attaches again to the thread if it is still the one that was detached. */
static int suspend_seize(struct attach *a, unsigned int i, struct err *e)
{
	struct tracee *t = &a->tracee[i];
	pid_t tid = t->tid;
	int ret;

	if (t->gone)
		return 0;
	ret = tracer_seize(t, tid, e);
	if (!ret && process_thread_start(&a->process, tid) != a->thread_start[i]) {
		tracer_detach(t);
		ret = -ESRCH;
	}
	if (ret == -ESRCH) {
		err_clear(e);
		*t = (struct tracee){ .tid = tid, .gone = true };
		return 0;
	}
	return ret ? ret : attach_begin_page(a, i, e);
}

void attach_suspend_if_requested(struct attach *a)
{
	struct err e = { 0 };
	int ret = 0;

	if (atomic_load_explicit(&a->phase, memory_order_relaxed) != ATTACH_SUSPENDING)
		return;
	for (unsigned int i = 0; i < a->ntracees; i++)
		suspend_detach(a, i);
	attach_more_suspend(a);
	follow_suspend(&a->follow);
	/* Nothing is traced any more, so this process may be stopped for any time. */
	attach_guard_unwatch(&a->guard);
	pthread_mutex_lock(&a->lock);
	suspend_set_phase(a, ATTACH_SUSPENDED);
	while (atomic_load(&a->phase) == ATTACH_SUSPENDED)
		pthread_cond_wait(&a->changed, &a->lock);
	pthread_mutex_unlock(&a->lock);
	attach_guard_watch(&a->guard);
	for (unsigned int i = 0; !ret && i < a->ntracees; i++)
		ret = suspend_seize(a, i, &e);
	/* The periods that have passed have no samples, as if the event had not been armed. */
	a->sampler.armed = false;
	if (ret)
		machine_end(a->vm, VM_END_ERROR, NULL, NULL, &e);
}

void attach_end_suspends(struct attach *a)
{
	pthread_mutex_lock(&a->lock);
	suspend_set_phase(a, ATTACH_ENDED);
	pthread_mutex_unlock(&a->lock);
}

void attach_request_suspend(struct attach *a)
{
	pthread_mutex_lock(&a->lock);
	if (atomic_load(&a->phase) == ATTACH_ACTIVE)
		suspend_set_phase(a, ATTACH_SUSPENDING);
	sampler_wake(&a->sampler);
	while (atomic_load(&a->phase) == ATTACH_SUSPENDING)
		pthread_cond_wait(&a->changed, &a->lock);
	pthread_mutex_unlock(&a->lock);
}

void attach_request_resume(struct attach *a)
{
	pthread_mutex_lock(&a->lock);
	if (atomic_load(&a->phase) == ATTACH_SUSPENDED)
		suspend_set_phase(a, ATTACH_ACTIVE);
	pthread_mutex_unlock(&a->lock);
}

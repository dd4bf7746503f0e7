/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/host_side.h"

#include "profile/record/host/host_switches.h"
#include "profile/record/host/host_threads.h"
#include "profile/record/run/run.h"
#include "vmm/vm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const struct event_state *host_event(const struct run *r)
{
	for (unsigned int i = 0; i < r->events.n; i++)
		if (r->events.at[i].name.class == EVENT_HOST && !r->events.at[i].dropped)
			return &r->events.at[i];
	return NULL;
}

void run_host_open(struct run *r)
{
	struct err why = { 0 };

	r->host_side.has = host_event(r) != NULL;
	if (!r->host_side.has)
		return;
	if (host_names_read(&r->host_side.names, r->opt->attach, &why) < 0)
		reporter_printf(
			r->opt->reporter,
			"kvmprof: warning: event host: functions of the host's kernel have no "
			"names: %s\n",
			why.text);
	(void)host_switches_open(&r->host_side.switches, &r->host_side.switches_why);
}

void run_host_close(struct run *r)
{
	host_names_deinit(&r->host_side.names);
	host_switches_close(r->host_side.switches);
	host_threads_destroy(r->host_side.threads);
}

int run_host_add_event(struct run *r, struct err *e)
{
	const struct event_state *s = host_event(r);

	if (!s || !r->opt->output)
		return 0;
	if (r->profile.info.nevents == PROFILE_MAX_EVENTS) {
		err_set(&r->host_side.threads_note, ENOSPC,
			"the VMM's other threads are not sampled: they are an event of their own, "
			"and %u are as many as there can be",
			PROFILE_MAX_EVENTS);
		return 0;
	}
	if (host_threads_create(&r->host_side.threads, s->vm.period,
				(uint8_t)r->profile.info.nevents, e))
		return -ENOMEM;
	r->pipeline_options.threads = r->host_side.threads;
	r->profile.info.event[r->profile.info.nevents++] = events_host_threads(s->vm.period);
	return 0;
}

/* Waits for the tid of a vCPU's thread, which a thread that was just started stores first. */
static pid_t wait_for_vcpu(const struct vm *vm, unsigned int vcpu)
{
	const struct timespec moment = { .tv_nsec = 100000 };
	pid_t tid;

	for (unsigned int i = 0; !(tid = vm_vcpu_tid(vm, vcpu)) && i < 10000; i++)
		nanosleep(&moment, NULL);
	return tid;
}

void run_host_threads(struct run *r)
{
	const unsigned int vcpus = vm_vcpus(r->vm);
	struct err why = { 0 };
	pid_t *tid;

	if (!r->host_side.threads)
		return;
	tid = calloc(vcpus, sizeof(*tid));
	for (unsigned int i = 0; tid && i < vcpus; i++)
		tid[i] = wait_for_vcpu(r->vm, i);
	if (!tid)
		err_nomem(&why);
	else
		(void)host_threads_open(r->host_side.threads, r->opt->attach, tid, vcpus,
					&r->host_side.threads_note, &why);
	free(tid);
	if (why.code)
		err_set(&r->host_side.threads_note, why.code,
			"the VMM's other threads are not sampled: %s", why.text);
}

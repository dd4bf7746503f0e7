/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/attach_again.h"

#include "base/clock.h"
#include "base/proc.h"
#include "vmm/attach/attach_hold.h"
#include "vmm/attach/attach_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A VMM that makes another machine does so within this time. */
#define AGAIN_NS UINT64_C(3000000000)
#define LOOK_NS 2000000u

static bool has_ended(pid_t pid)
{
	char task[32];

	snprintf(task, sizeof(task), "/proc/%d", (int)pid);
	return proc_has_ended(task);
}

/* Returns whether one of its threads runs a vCPU: until then there may be more vCPUs to come. */
static bool is_running(const struct process *p)
{
	for (unsigned int i = 0; i < p->nthreads; i++)
		if (process_activity(p, p->thread[i]) == PROCESS_GUEST)
			return true;
	return false;
}

bool attach_again_look(struct attach *a)
{
	struct process *p = malloc(sizeof(*p));
	struct err ignored = { 0 };
	const bool runs = p && !process_look(p, a->cfg.pid, &ignored) && is_running(p);

	if (runs)
		a->process = *p;
	free(p);
	return runs;
}

/* Forgets the vCPUs, whose threads have ended. */
static void forget_vcpus(struct attach *a)
{
	attach_look_close(a);
	attach_host_close(a);
	for (unsigned int i = 0; i < a->places; i++) {
		a->facts.signals += a->tracee[i].passed_on;
		regs_page_unmap(a->page[i]);
		a->page[i] = NULL;
		a->asks[i] = false;
		a->again[i] = 0;
		a->too_soon[i] = 0;
		a->tracee[i] = (struct tracee){ 0 };
	}
	a->ntracees = 0;
	/* The record of BPF is for threads that have ended. */
	if (!a->peek)
		return;
	pvm_peek_ops()->facts(a->peek, &a->facts);
	pvm_peek_ops()->close(a->peek);
	a->peek = NULL;
	snprintf(a->facts.why_not, sizeof(a->facts.why_not),
		 "the VMM has made another machine, which is sampled by ptrace");
}

static int sample_next(struct attach *a, struct err *e)
{
	int ret = attach_hold_next(a, e);

	ret = ret ? ret : attach_host_open(a, e);
	/* Places without a vCPU count as ended, so that no sample is due there. */
	for (unsigned int i = ret ? 0 : a->ntracees; i < a->places; i++)
		a->tracee[i].gone = true;
	if (a->ntracees > a->places)
		a->places = a->ntracees;
	a->sampler.ntriggers = a->vm->nvcpus = a->places;
	if (ret)
		return ret;
	attach_publish_memory(a);
	attach_release_followed(a);
	/* The time in between has no samples, as if the event had not been armed. */
	a->sampler.armed = false;
	a->facts.machines++;
	return 0;
}

bool attach_again(struct attach *a)
{
	const uint64_t now = clock_mono_ns();
	struct err why = { 0 };
	struct process *p;

	if (!a->gone_ns)
		a->gone_ns = now;
	if (has_ended(a->cfg.pid) || now - a->gone_ns > AGAIN_NS)
		return false;
	if (now - a->gone_checked_ns < LOOK_NS)
		return true;
	a->gone_checked_ns = now;
	p = malloc(sizeof(*p));
	if (p && !process_look(p, a->cfg.pid, &why) && is_running(p)) {
		forget_vcpus(a);
		a->process = *p;
		if (!sample_next(a, &why))
			a->gone_ns = 0;
	}
	free(p);
	return true;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attach_state: what the parts of attach share: attach.c (the machine and its thread),
 * attach_hold.c (which threads run its vCPUs, where its memory lies), attach_sample.c (when a
 * vCPU is sampled, and how). While the tracer's thread is there all functions here run on it.
 */
#ifndef KVMPROF_VMM_ATTACH_ATTACH_STATE_H
#define KVMPROF_VMM_ATTACH_ATTACH_STATE_H

#include "vmm/attach/attach.h"
#include "vmm/attach/peek_capture.h"
#include "vmm/attach/process.h"
#include "vmm/attach/regs_page.h"
#include "vmm/attach/slots.h"
#include "vmm/attach/tracer.h"
#include "vmm/gmem_remote.h"
#include "vmm/machine.h"

#include <pthread.h>
#include <semaphore.h>

struct attach {
	struct backend base;
	struct vm *vm;
	struct attach_config cfg;
	struct process process;
	struct tracee tracee[ATTACH_MAX_VCPUS];
	unsigned int ntracees;
	struct gmem_remote capture, consumer; /* one for each thread that reads */
	struct gmem_remote_expected expected[ATTACH_MAX_VCPUS];
	struct gmem consumer_mem;
	struct slots_proof proof;
	pthread_t thread;
	bool started;
	int wake_fd, child_fd;
	sem_t ready, go;
	struct err err; /* of the beginning; valid after `ready` */
	struct attach_facts facts;
	struct trigger trigger[ATTACH_MAX_VCPUS];
	bool armed;			   /* when control was last looked at */
	uint64_t hidden[ATTACH_MAX_VCPUS]; /* by the sentinels */
	bool asks[ATTACH_MAX_VCPUS];	   /* the registers are stored because we asked */
	struct peek_capture peek;
	uint64_t again[ATTACH_MAX_VCPUS]; /* not before: its thread waits for a processor */
};

/* The sentinel in vCPU i's page of registers (regs_page.h), where we may write to it: put it, take it away. */
static inline void attach_mark(struct attach *a, unsigned int i)
{
	if (a->asks[i])
		a->hidden[i] = regs_page_mark(a->vm->vcpu[i].run);
}

static inline void attach_unmark(struct attach *a, unsigned int i)
{
	if (a->asks[i])
		regs_page_unmark(a->vm->vcpu[i].run, a->hidden[i]);
}

/*
 * Hold the threads that run vCPUs, map the pages that KVM shares, find the memory: 0, or a
 * negative error. attach_let_go() undoes it, also what was done before an error.
 */
int attach_hold(struct attach *a, struct err *e);
void attach_let_go(struct attach *a);

/* Until vm->stop, or until all threads are gone. */
void attach_sample(struct attach *a);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attach_state: what the parts of attach share: attach.c (the machine and its thread),
 * attach_hold.c (which threads run its vCPUs, where its memory lies), attach_sample.c (when a
 * vCPU is sampled, and how), attach_host.c (the event host), attach_rest.c (what happens while we are stopped). While the tracer's
 * thread is there all functions here run on it.
 */
#ifndef KVMPROF_VMM_ATTACH_ATTACH_STATE_H
#define KVMPROF_VMM_ATTACH_ATTACH_STATE_H

#include "vmm/attach/attach.h"
#include "vmm/attach/choice.h"
#include "vmm/attach/host_bpf.h"
#include "vmm/attach/process.h"
#include "vmm/attach/regs_page.h"
#include "vmm/attach/slots.h"
#include "vmm/attach/tracer.h"
#include "vmm/gmem_remote.h"
#include "vmm/machine.h"
#include "vmm/pvm.h"

#include <pthread.h>
#include <semaphore.h>

/* What the tracer's thread does, for attach_rest.c. */
enum attach_phase {
	ATTACH_WORKS,	 /* it samples, or is about to */
	ATTACH_TO_REST,	 /* it is to let go of all threads */
	ATTACH_RESTS,	 /* it has, until it is told to go on */
	ATTACH_HAS_ENDED /* it has, for good */
};

struct attach {
	struct vm *vm;
	struct attach_config cfg;
	struct process process;
	struct tracee tracee[ATTACH_MAX_VCPUS];
	uint64_t thread_start[ATTACH_MAX_VCPUS]; /* of a tracee: with its number it names it */
	unsigned int ntracees;
	struct gmem_remote capture, consumer; /* one for each thread that reads */
	struct gmem_remote_expected expected[ATTACH_MAX_VCPUS];
	struct gmem capture_mem, consumer_mem;	/* the same memory, read by each of these */
	struct kvm_run *page[ATTACH_MAX_VCPUS]; /* of registers; by vcpu.index */
	struct host_bpf slots; /* reads KVM's memory slots; not open: BPF can't be used */
	struct slots_proof proof;
	pthread_t thread;
	bool started;
	int wake_fd, child_fd;
	struct sigaction old_child; /* what SIGCHLD did before */
	sem_t ready;
	atomic_bool go;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	_Atomic(enum attach_phase) phase; /* changes under the lock */
	struct err err;			  /* of the beginning; valid after `ready` */
	struct attach_facts facts;
	struct trigger trigger[ATTACH_MAX_VCPUS];
	bool armed;			   /* when control was last looked at */
	uint64_t hidden[ATTACH_MAX_VCPUS]; /* by the sentinels */
	bool asks[ATTACH_MAX_VCPUS];	   /* the registers are stored because we asked */
	struct peek_capture *peek;	   /* by pvm_peek_ops(); NULL: BPF is not used */
	struct choice choice;		   /* AUTO */
	/* How the sample that is due was tried first. */
	enum choice_technique first[ATTACH_MAX_VCPUS];
	uint64_t again[ATTACH_MAX_VCPUS]; /* not before: its thread is to get on first */
	/* How much longer it is left alone: powers of two. */
	unsigned int too_soon[ATTACH_MAX_VCPUS];
	struct attach_host *host; /* attach_host.h, by vCPU; NULL: another event is sampled */
	uint64_t attended_ns; /* when all threads were last looked at */
};

/* Write the sentinel to vCPU i's page of registers (regs_page.h), or take it away, if we may. */
static inline void attach_mark(struct attach *a, unsigned int i)
{
	if (a->asks[i])
		a->hidden[i] = regs_page_mark(a->page[i]);
}

static inline void attach_unmark(struct attach *a, unsigned int i)
{
	if (a->asks[i])
		regs_page_unmark(a->page[i], a->hidden[i]);
}

/*
 * Hold the threads that run vCPUs, map the pages that KVM shares, find the memory: 0, or a
 * negative error. attach_let_go() undoes it, also what was done before an error.
 */
int attach_hold(struct attach *a, struct err *e);
void attach_let_go(struct attach *a);

/*
 * Ask for registers in vCPU i's page from now on. -ENOTSUP: the VMM uses it in a way that does
 * not help.
 */
int attach_begin_page(struct attach *a, unsigned int i, struct err *e);

/* Samples are taken by BPF where that can see them. */
static inline bool attach_peeks(const struct attach *a)
{
	return a->peek && pvm_peek_ops()->is_usable(a->peek);
}

/* Until a->go: no thread is held. Their signals still go through us. */
void attach_stand_by(struct attach *a);
/* Until vm->stop, or until all threads are gone. */
void attach_sample(struct attach *a);

/* -- attach_rest.c: nothing is held, or waits for us, while this process is stopped ------------ */

/* The tracer's: rest when that is asked for. */
void attach_rest_if_asked(struct attach *a);
/* The tracer's: it holds nothing any more, for good. */
void attach_end_rests(struct attach *a);
/* Another thread's; machine_ops.rest and .resume. */
void attach_ask_for_rest(struct attach *a);
void attach_ask_to_resume(struct attach *a);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attach_state: the state that the files attach_*.c share. The tracer's thread alone uses it from
 * its start to its end, except for atomic members and those that are guarded by the lock.
 */
#ifndef KVMPROF_VMM_ATTACH_ATTACH_STATE_H
#define KVMPROF_VMM_ATTACH_ATTACH_STATE_H

#include "vmm/attach/attach.h"
#include "vmm/attach/attach_guard.h"
#include "vmm/attach/attach_look.h"
#include "vmm/attach/attach_reader.h"
#include "vmm/attach/choice.h"
#include "vmm/attach/follow.h"
#include "vmm/attach/host_bpf.h"
#include "vmm/attach/process.h"
#include "vmm/attach/regs_page.h"
#include "vmm/attach/resident.h"
#include "vmm/attach/sampler.h"
#include "vmm/attach/slots.h"
#include "vmm/attach/tracer.h"
#include "base/gmem_remote.h"
#include "vmm/machine.h"
#include "vmm/pvm_peek_ops.h"
#include "vmm/attach/attach_facts.h"
#include "vmm/capture/trigger.h"

#include <pthread.h>
#include <semaphore.h>

#define ATTACH_MAX_STRAYS 16u

/* The search for vCPUs that are added later (attach_more.c). All zero: it has not begun. */
struct attach_more {
	/*
	 * When threads were last counted, when descriptors were last read, and until when they are
	 * read often.
	 */
	uint64_t counted_ns, looked_ns, until_ns;
	uint64_t threads;
	/* Since when there is a vCPU whose thread is not known; 0: there is none. */
	uint64_t fresh_ns;
	pid_t others[ATTACH_MAX_STRAYS]; /* the last threads that were stopped and run no vCPU */
	unsigned int nothers;
	struct tracee asked; /* a thread that was asked to stop, to see what it runs; tid 0: none */
	struct process *process; /* owned; a copy for each search */
};

/* The phase of the tracer's thread. attach_suspend.c waits for its changes. */
enum attach_phase {
	ATTACH_ACTIVE,	   /* it takes samples, or will */
	ATTACH_SUSPENDING, /* it must detach from all threads */
	ATTACH_SUSPENDED,  /* it has detached, until a resume is requested */
	ATTACH_ENDED	   /* it has detached and ends */
};

struct attach {
	struct vm *vm;
	struct attach_config cfg;
	struct process process;
	struct tracee tracee[ATTACH_MAX_VCPUS];
	/* start time of each tracee; with its number it identifies the thread */
	uint64_t thread_start[ATTACH_MAX_VCPUS];
	unsigned int ntracees;
	/* threads that are no vCPUs and must be detached from at their next stop */
	struct tracee stray[ATTACH_MAX_STRAYS];
	unsigned int nstrays;
	struct gmem_remote capture, consumer; /* one for each thread that reads memory */
	struct resident resident;	      /* pages that capture may read */
	struct attach_reader *reader;	      /* serves consumer */
	uint64_t absent_before; /* value of capture.absent at the beginning of this sample */
	struct gmem_remote_expected expected[ATTACH_MAX_VCPUS];
	struct gmem capture_mem, consumer_mem;	/* the same memory, read by each of these */
	struct kvm_run *page[ATTACH_MAX_VCPUS]; /* pages with the vCPUs' registers, by vcpu.index */
	struct follow follow;			/* with cfg.follows */
	sem_t known; /* posted when attach_open() has made the machine of the followed process */
	uint64_t looked_ns;  /* when guest memory was last searched */
	unsigned int places; /* the highest number of vCPUs so far */
	struct attach_more more;
	/* Since when all vCPUs have ended (0: they have not), and when that was last checked. */
	uint64_t gone_ns, gone_checked_ns;
	bool proven;	       /* registers have proven the place of guest memory */
	struct host_bpf slots; /* reads KVM's memory slots; not open: BPF cannot be used */
	struct slots_proof proof;
	struct attach_guard guard;
	pthread_t thread;
	bool started;
	struct sampler sampler;
	int child_fd;
	struct sigaction old_child; /* action of SIGCHLD before */
	sem_t ready;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	_Atomic(enum attach_phase) phase; /* changes under the lock */
	struct err err;			  /* error of the start; valid after `ready` */
	struct attach_facts facts;
	struct trigger trigger[ATTACH_MAX_VCPUS];
	uint64_t hidden[ATTACH_MAX_VCPUS]; /* RFLAGS that the sentinels have replaced */
	bool asks[ATTACH_MAX_VCPUS];	   /* kvmprof has requested the registers in the page */
	struct peek_capture *peek;	   /* by pvm_peek_ops(); NULL: BPF is not used */
	struct choice choice;		   /* AUTO */
	/* The technique by which the sample that is due was tried first. */
	enum choice_technique first[ATTACH_MAX_VCPUS];
	/* Earliest time of the next attempt (ns), so that the thread can run first. */
	uint64_t again[ATTACH_MAX_VCPUS];
	/* Exponent of the delay: a power of two of periods. */
	unsigned int too_soon[ATTACH_MAX_VCPUS];
	struct attach_look look[ATTACH_MAX_VCPUS];
	/*
	 * Delays for a processor when samples began, of each vCPU's thread and of the tracer (ns).
	 */
	uint64_t delay_at_start[ATTACH_MAX_VCPUS], own_delay_at_start;
	unsigned int nlooks;			 /* number of look[] whose files are open */
	enum attach_seen seen[ATTACH_MAX_VCPUS]; /* state before the thread was asked to stop */
	/*
	 * State of attach_host.h by vCPU, and the number of open ones; NULL: another event is
	 * sampled.
	 */
	struct attach_host *host;
	unsigned int nhosts;
	uint64_t attended_ns; /* when all threads were last checked */
};

/*
 * Writes the sentinel to vCPU i's page (regs_page.h) if kvmprof has requested the registers there.
 */
static inline void attach_mark(struct attach *a, unsigned int i)
{
	if (a->asks[i])
		a->hidden[i] = regs_page_mark(a->page[i]);
}

/* Removes the sentinel that attach_mark() wrote, if KVM has not stored registers since. */
static inline void attach_unmark(struct attach *a, unsigned int i)
{
	if (a->asks[i])
		regs_page_unmark(a->page[i], a->hidden[i]);
}

/* Returns whether BPF takes the samples that it can take. */
static inline bool attach_peeks(const struct attach *a)
{
	return a->peek && pvm_peek_ops()->is_usable(a->peek);
}

#endif

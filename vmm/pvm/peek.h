/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * peek: samples of a vCPU of another process without stopping its thread.
 *
 * A BPF program (bpf/peek.bpf.c) is run on the processor on which the vCPU runs: an interrupt of
 * some microseconds, in which the registers that KVM has saved and the pieces of guest memory that
 * a sample needs are copied. What it can't see exactly (the guest's kernel, a VMM at work, memory
 * that is not there) is not taken: the caller has another way. Nothing is written in the other
 * process or the guest; program and memory are freed when our descriptors are closed.
 *
 * What stands in kernel memory is what this kernel's type information says. Whether that is what KVM
 * itself would tell is not taken on trust: peek_compare() holds the one against the other, and
 * before it has nothing is sampled.
 *
 * All calls of one thread, but for peek_open() and peek_close().
 */
#ifndef KVMPROF_VMM_PVM_PEEK_H
#define KVMPROF_VMM_PVM_PEEK_H

#include "base/err.h"
#include "vmm/attach/host_bpf.h"
#include "vmm/pvm/peek_record.h"
#include "base/gmem.h"

#include <linux/kvm.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct peek {
	struct host_bpf bpf;
	struct peek_block *block; /* the program's; NULL: not open */
	cpu_set_t allowed;	  /* processors that the sampling thread may use */
	unsigned int in_the_way;  /* times that it was on a vCPU's */
	uint64_t taken_ns;	  /* how long the last interrupt took, seen from outside */
	uint64_t count[PEEK_STATUSES];
	uint64_t compared;
	struct err differs; /* not 0: memory and KVM disagree, nothing is sampled any more */
};

/* One vCPU and its thread. */
struct peek_vcpu {
	pid_t pid, tid;	     /* as we see them */
	unsigned int ns_tid; /* as itself sees it, in the name space below */
	uint64_t pidns_dev, pidns_ino;
	unsigned int fd, id;
	uint64_t kernel,
		kernel_task;   /* where its struct kvm_vcpu and its thread are; 0: not known yet */
	unsigned int compared; /* times that it agreed with KVM */
	unsigned int held;     /* times that it could have been compared */
};

/* What of the guest a sample is to have. */
struct peek_want {
	uint32_t stack_len;
	uint64_t current; /* guest address of the pointer to the running task; 0: none */
	unsigned int nmembers;
	struct peek_member member[PEEK_MEMBERS];
};

/*
 * Load the program. -EPERM, -ENOTSUP and others: it can't be, for the reason that *e gives. Takes
 * some 20 ms, in which the kernel's types are looked through.
 */
int peek_open(struct peek *p, struct err *e);
/* Not open is fine. */
void peek_close(struct peek *p);

/* Open, and never seen to disagree with KVM. */
bool peek_is_usable(const struct peek *p);
/* The guest's memory, from now on. */
void peek_set_memory(struct peek *p, const struct gmem *mem);
/* Prepare for the thread tid of pid, which runs vCPU number id by its descriptor fd. */
int peek_aim(struct peek_vcpu *v, pid_t pid, pid_t tid, unsigned int fd, unsigned int id,
	     struct err *e);

/* PEEK_TAKEN: p->block->a is a whole sample. Else it says why there is none. */
enum peek_status peek_take(struct peek *p, struct peek_vcpu *v, const struct peek_want *want);
/*
 * The thread is held, and run is what KVM has stored for it: is the same in memory? To be called
 * whenever that is so: it looks the first times, and now and then.
 */
void peek_compare(struct peek *p, struct peek_vcpu *v, const struct kvm_run *run);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * peek: samples a vCPU of another process without stopping its thread.
 *
 * A BPF program (bpf/peek.bpf.c) runs on the processor on which the vCPU runs, in an interrupt of a
 * few microseconds. It copies the registers that KVM has saved and the pieces of guest memory that
 * a sample needs. It takes no sample of what it cannot see exactly (the guest's kernel, a working
 * VMM, memory that is not loaded): the caller has another way for these. Nothing is written in the
 * other process or the guest. The program and its memory are freed when our descriptors are closed.
 *
 * The layout of kernel memory comes from the running kernel's type information. Whether the values
 * are those that KVM itself would report is verified: peek_compare() compares the two, and no
 * samples are taken before it has succeeded.
 *
 * One thread makes all calls except peek_open() and peek_close().
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
	struct peek_block *block; /* shared with the program; NULL: not open */
	cpu_set_t allowed;	  /* processors that the sampling thread may use */
	unsigned int in_the_way;  /* how often it was on a vCPU's processor */
	uint64_t taken_ns;	  /* duration of the last interrupt, measured from outside */
	uint64_t count[PEEK_STATUSES];
	uint64_t compared;
	struct err differs; /* not 0: memory and KVM disagree, and no samples are taken any more */
};

/* A vCPU and its thread. */
struct peek_vcpu {
	pid_t pid, tid;	     /* as this process sees them */
	unsigned int ns_tid; /* id in the innermost name space, which the next line identifies */
	uint64_t pidns_dev, pidns_ino;
	unsigned int fd, id;
	uint64_t kernel,
		/* Kernel addresses of its struct kvm_vcpu and its thread; 0: unknown yet. */
		kernel_task;
	unsigned int compared; /* number of comparisons with KVM */
	unsigned int held;     /* number of times that it could have been compared */
};

/* The guest memory that a sample needs. */
struct peek_want {
	/* Bytes of the stack from RSP on. */
	uint32_t stack_len;
	uint64_t current; /* guest address of the pointer to the running task; 0: none */
	unsigned int nmembers;
	struct peek_member member[PEEK_MEMBERS];
};

/*
 * Loads the program, which takes some 20 ms because the kernel's types are searched. Returns 0, or
 * -errno (-EPERM, -ENOTSUP, ...) with the reason in *e. peek_close() frees it.
 */
int peek_open(struct peek *p, struct err *e);
/* Unloads the program. Accepts *p that is not open. */
void peek_close(struct peek *p);

/* Returns whether it is open and has never disagreed with KVM. */
bool peek_is_usable(const struct peek *p);
/* Sets the guest's memory for all later samples. *mem is copied. */
void peek_set_memory(struct peek *p, const struct gmem *mem);
/*
 * Prepares *v for the thread tid of pid, which runs vCPU number id with its descriptor fd. Returns
 * 0, or -errno with *e recorded.
 */
int peek_aim(struct peek_vcpu *v, pid_t pid, pid_t tid, unsigned int fd, unsigned int id,
	     struct err *e);

/*
 * Takes a sample. Returns PEEK_TAKEN if p->block->a is a complete sample, else the reason why there
 * is none.
 */
enum peek_status peek_take(struct peek *p, struct peek_vcpu *v, const struct peek_want *want);
/*
 * Compares the registers in memory with *run, which KVM has stored for the stopped thread. The
 * caller calls it whenever the thread is stopped; it compares the first times, and then every 64th
 * time.
 */
void peek_compare(struct peek *p, struct peek_vcpu *v, const struct kvm_run *run);

#endif

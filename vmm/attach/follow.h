/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * follow: traces a VMM from its execve(2) to its first KVM_RUN, through jailers, forks and further
 * execs.
 *
 * All threads of the process and of its children are traced, and run freely until one of these
 * processes has a descriptor of a vCPU. From then on each thread of that process, except for the
 * first, stops at its system calls until one enters KVM_RUN. That thread is held there, before any
 * guest has run. Processes without a vCPU are then released. The threads of the VMM stay traced,
 * because a stop could interrupt a system call in which they wait; their signals are passed on.
 *
 * A thread that sleeps is interrupted only in system calls that the kernel restarts by itself: see
 * is_interruptible(). Sources: ptrace(2); kernel/signal.c. All functions are called by the tracer's
 * thread.
 */
#ifndef KVMPROF_VMM_ATTACH_FOLLOW_H
#define KVMPROF_VMM_ATTACH_FOLLOW_H

#include "base/err.h"
#include "vmm/attach/process.h"
#include "vmm/attach/tracer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Interval at which the caller takes a step, in ns. */
#define FOLLOW_NAP_NS 500000u
#define FOLLOW_MAX_PROCESSES 64u

struct follow_thread {
	struct tracee t;
	pid_t process;
	bool calls;  /* it stops at its system calls */
	bool at_run; /* held at a KVM_RUN */
};

struct follow_process {
	pid_t pid;
	bool has_vm, has_vcpu; /* descriptors of KVM */
};

struct follow {
	struct follow_thread *thread; /* owned */
	size_t n, cap;
	struct follow_process process[FOLLOW_MAX_PROCESSES];
	unsigned int nprocesses;
	pid_t pid; /* the process whose thread is held at a KVM_RUN; 0: there is none yet */
	/* CLOCK_MONOTONIC; 0: not yet. */
	uint64_t exec_ns; /* the first execve(2) */
	uint64_t vm_ns;	  /* a process was seen to have a virtual machine */
	uint64_t run_ns;  /* the first KVM_RUN */
	uint64_t looked_ns;
	bool settled;		       /* follow_settle() */
	pid_t taken[ATTACH_MAX_VCPUS]; /* threads that follow_hand_over_next() has handed over */
	unsigned int ntaken;
};

/*
 * Seizes all threads of the process. follow_end() must follow, also after an error. Returns 0;
 * -ESRCH if there is no such process; -EBUSY if another process traces it; or another -errno.
 */
int follow_begin(struct follow *f, pid_t pid, struct err *e);
/*
 * Handles the events of all threads, without waiting. Returns 1 if a thread is held at KVM_RUN, 0
 * if none is yet, and -ECHILD if all have ended. Called every FOLLOW_NAP_NS until it returns 1.
 */
int follow_step(struct follow *f, struct err *e);
/* Handles events of threads that are not vCPUs, once follow_step() has returned 1. */
void follow_handle_stops(struct follow *f);
/* Returns the number of threads that are held at KVM_RUN. */
unsigned int follow_held_count(const struct follow *f);
/* Holds threads at KVM_RUN again, because those that were handed over have ended. */
void follow_hold_again(struct follow *f);
/* Stops no thread at its system calls any more, so holds none at KVM_RUN from now on. */
void follow_settle(struct follow *f);
/*
 * Hands over a thread that is held at KVM_RUN: *out holds it, and it is no longer followed. Returns
 * false if there is none.
 */
bool follow_hand_over_next(struct follow *f, struct tracee *out);
/*
 * Hands over thread `tid`, which runs a vCPU by now: *out holds it, and it is no longer followed.
 * Returns false if it did not stop within timeout_ns, or is not followed.
 */
bool follow_hand_over(struct follow *f, pid_t tid, uint64_t timeout_ns, struct tracee *out);
/* Follows a thread again that was handed over and is still held, and resumes it. */
void follow_readd(struct follow *f, struct tracee *t);
/*
 * Stops all threads and detaches from them, because this process is about to be stopped and their
 * signals would wait for it.
 */
void follow_suspend(struct follow *f);
/*
 * Detaches from the threads that are held, and frees the list. The kernel detaches from all others
 * when this thread of kvmprof ends, so that no stop interrupts what they wait in.
 */
void follow_end(struct follow *f);

#endif

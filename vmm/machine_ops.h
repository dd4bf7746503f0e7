/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * machine_ops: the operations that differ between a machine that kvmprof runs itself and one that
 * another process runs.
 */
#ifndef KVMPROF_VMM_MACHINE_OPS_H
#define KVMPROF_VMM_MACHINE_OPS_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct gmem;
struct vm;

/*
 * The settings that samples depend on; the comment is the type of the argument of
 * machine_ops.changed.
 */
enum vm_change {
	VM_CHANGED_CONTROL, /* NULL; the new values are in struct vm_control and vcpu.collect */
	VM_CHANGED_SLIDE,   /* uint64_t */
	VM_CHANGED_TASK,    /* struct capture_task_plan */
	VM_CHANGED_LAYOUT,  /* struct capture_python_layout */
	VM_CHANGED_THREAD,  /* struct capture_python_thread */
};

/*
 * The operations of a machine, chosen when it is created: one that kvmprof runs itself, or one that
 * another process runs (attach/). The machine's creating thread calls them, unless stated
 * otherwise.
 */
struct attach_facts;
struct machine_ops {
	/* Starts the machine. Returns 0, or -errno with *e recorded; then nothing runs. */
	int (*start)(struct vm *vm, struct err *e);
	/* Makes the threads that take samples check vm->control and vm->stop. Any thread. */
	void (*wake)(struct vm *vm);
	/* Waits until no more samples are taken. Also called if the machine was not started. */
	void (*join)(struct vm *vm);
	/*
	 * Frees everything that machine_free() does not free. Called for started, unstarted and
	 * partly created machines.
	 */
	void (*destroy)(struct vm *vm);
	/*
	 * Returns the consumer's own view of guest memory, which it reads while vCPUs are sampled.
	 */
	const struct gmem *(*memory)(const struct vm *vm);
	/* Implements vm_refresh_memory(); NULL: memory does not move. */
	void (*refresh_memory)(struct vm *vm);
	/*
	 * Implements vm_vcpu_tid() for a machine of another process; NULL: they are threads of this
	 * process.
	 */
	pid_t (*vcpu_tid)(const struct vm *vm, unsigned int vcpu);
	/* Implement vm_wait_samples() and vm_now_ns(); NULL: sleep, and CLOCK_MONOTONIC. */
	void (*wait)(struct vm *vm, uint64_t ns);
	/* Implements vm_consumer_gone(); NULL: nothing to do. */
	void (*consumer_gone)(struct vm *vm);
	uint64_t (*now)(const struct vm *vm);
	/* For a machine of another process only, which vm_pause() cannot stop; else NULL. */
	void (*suspend)(struct vm *vm); /* implements foreign_suspend() */
	void (*resume)(struct vm *vm);	/* implements foreign_resume() */
	/*
	 * Passes a changed setting to the process that takes the samples; NULL: samples are taken
	 * in this process. Any thread.
	 */
	void (*changed)(struct vm *vm, enum vm_change what, const void *how);
	void (*facts)(const struct vm *vm, struct attach_facts *out);
};

#endif

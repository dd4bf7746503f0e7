/* SPDX-License-Identifier: GPL-2.0-or-later */
/* machine_ops: what a struct vm is: a machine of our own, or one that another process runs. */
#ifndef KVMPROF_VMM_MACHINE_OPS_H
#define KVMPROF_VMM_MACHINE_OPS_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct gmem;
struct vm;

/* Settings that samples depend on, and what machine_ops.changed gets with each. */
enum vm_change {
	VM_CHANGED_CONTROL, /* NULL; struct vm_control, and vcpu.collect */
	VM_CHANGED_SLIDE,   /* uint64_t */
	VM_CHANGED_TASK,    /* struct capture_task_plan */
	VM_CHANGED_LAYOUT,  /* struct capture_python_layout */
	VM_CHANGED_THREAD,  /* struct capture_python_thread */
};

/*
 * What a struct vm is: a machine of our own, or one that another process runs (attach/). Chosen
 * when it is made.
 */
struct attach_facts;
struct machine_ops {
	/* 0, or a negative error: then nothing runs. */
	int (*start)(struct vm *vm, struct err *e);
	/* Have those that take samples look at vm->control and vm->stop. Any thread. */
	void (*wake)(struct vm *vm);
	/* Until no more samples are taken. Also where it was not started. */
	void (*join)(struct vm *vm);
	/* All but what machine_free() frees; started or not, also half made. */
	void (*destroy)(struct vm *vm);
	/* The consumer's view of memory: its own, as it reads while vCPUs are sampled. */
	const struct gmem *(*memory)(const struct vm *vm);
	/* vm_vcpu_tid() of a machine that another process runs; NULL: its threads are ours. */
	pid_t (*vcpu_tid)(const struct vm *vm, unsigned int vcpu);
	/* vm_rest() and vm_now_ns(); NULL: the one sleeps, the other is CLOCK_MONOTONIC. */
	void (*wait)(struct vm *vm, uint64_t ns);
	void (*wait_is_over)(struct vm *vm); /* vm_rests_no_more(); NULL: nobody has to know */
	uint64_t (*now)(const struct vm *vm);
	/* Only of a machine that another process runs, which vm_pause() can not stop; else NULL. */
	void (*rest)(struct vm *vm);   /* foreign_rest() */
	void (*resume)(struct vm *vm); /* foreign_resume() */
	/* Passes on what samples depend on; NULL: they are taken in this process. Any thread. */
	void (*changed)(struct vm *vm, enum vm_change what, const void *how);
	void (*facts)(const struct vm *vm, struct attach_facts *out);
};

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* foreign: functions for all machines that kvmprof does not run itself. */
#ifndef KVMPROF_VMM_ATTACH_FOREIGN_H
#define KVMPROF_VMM_ATTACH_FOREIGN_H

#include "base/err.h"

#include <stdbool.h>

struct attach_config;
struct attach_facts;
struct machine_ops;
struct vm;

/* The vCPUs that there are now, and those that there may be later, the first included. */
struct foreign_vcpus {
	unsigned int n, places;
};

/*
 * Returns a struct vm for vCPUs of another program, without samples yet; `attached` is the context
 * of *ops. If cfg->ring_size is 0, the caller initialises the rings. vm_destroy() frees it and
 * calls ops->destroy. Called by the thread that opens the machine. Returns NULL with *e set if
 * memory or descriptors are exhausted; the caller still owns `attached` then.
 */
struct vm *foreign_machine_new(const struct machine_ops *ops, void *attached,
			       const struct attach_config *cfg, struct foreign_vcpus vcpus,
			       struct err *e);

/*
 * Releases the machine before this whole process is stopped (SIGTSTP). When it returns, the machine
 * runs and nothing in it waits for kvmprof until foreign_resume(). No samples are taken in between,
 * and that time is not on their clock. Called by the same thread as foreign_resume(), for a vm of
 * attach_open(), split_open() or gdb_open(), at any time until vm_destroy().
 */
void foreign_suspend(struct vm *vm);
/* Samples the machine again after foreign_suspend(). */
void foreign_resume(struct vm *vm);
/*
 * Stores the facts of a vm of attach_open(), split_open() or gdb_open(). Before vm_join(), counters
 * may be from different moments. Any thread may call it.
 */
void foreign_facts(const struct vm *vm, struct attach_facts *out);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* foreign: what all machines have in common that are not ours to run. */
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
 * Returns a struct vm for vCPUs that are not KVM's, without samples yet; attached is for ops. With a
 * cfg->ring_size of 0 the caller initializes the rings. Returns NULL if there is no memory (*e); attached is
 * still the caller's then.
 */
struct vm *foreign_machine_new(const struct machine_ops *ops, void *attached,
			       const struct attach_config *cfg, struct foreign_vcpus vcpus,
			       struct err *e);

/*
 * Around a stop of this whole process (SIGTSTP): on return from rest the other machine runs, and
 * nothing in it waits for us, until resume. Samples are taken from vm_start() on, and not between
 * the two; that time is not on their clock. Both by one thread. Only after attach_open() or
 * gdb_open(), at any time until vm_destroy().
 */
void foreign_suspend(struct vm *vm);
void foreign_resume(struct vm *vm);
/* Stores the facts of a vm that came from attach_open(), split_open() or gdb_open(). After vm_join() they are final. */
void foreign_facts(const struct vm *vm, struct attach_facts *out);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slots_kvm: reads KVM's memory slots by a BPF program and makes them regions of guest memory. All
 * functions are called by the tracer's thread.
 */
#ifndef KVMPROF_VMM_ATTACH_SLOTS_KVM_H
#define KVMPROF_VMM_ATTACH_SLOTS_KVM_H

#include "base/err.h"
#include "base/gmem.h"
#include "vmm/attach/process.h"

struct host_bpf;
struct slots_block;
/*
 * Loads the program that reads KVM's slots. host_bpf_close() unloads it. Returns 0 or an error as
 * host_bpf_open().
 */
int slots_open(struct host_bpf *bpf, struct err *e);
/*
 * Stores the current slots of the machine of p's first vCPU in mem->region; mem->remote is kept,
 * and all of *mem after an error. *partial: set if some memory is missing there. Returns 0 or a
 * negative error, with the reason in *e.
 */
int slots_read(struct gmem *mem, bool *partial, const struct host_bpf *bpf, const struct process *p,
	       struct err *e);
/*
 * Makes regions of the slots in *b, as slots_read() does. Slots on devices are left out. Sorts the
 * slots in *b. Returns 0, -E2BIG, -EBADMSG for impossible slots, or -ENOENT if no memory is left.
 */
int slots_of_record(struct gmem *mem, bool *partial, struct slots_block *b, const struct process *p,
		    struct err *e);

/*
 * Numbers the machines of the process from 1 on, in the order of their vCPUs' least descriptors,
 * and stores the number in each vCPU. Sorts the vCPUs by descriptor. Drops those of machines with
 * less than 1 MiB of memory, which are a VMM's helpers, if there are others. Returns the number of
 * machines, or a negative error.
 */
int slots_number_machines(struct process *p, const struct host_bpf *bpf, struct err *e);

#endif

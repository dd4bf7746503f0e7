/* SPDX-License-Identifier: GPL-2.0-or-later */
/* slots_kvm: the memory slots that KVM has, by a BPF program, as regions of guest memory. */
#ifndef KVMPROF_VMM_ATTACH_SLOTS_KVM_H
#define KVMPROF_VMM_ATTACH_SLOTS_KVM_H

#include "base/err.h"
#include "base/gmem.h"
#include "vmm/attach/process.h"

struct host_bpf;
struct slots_block;
/* Load the program that reads KVM's slots; for host_bpf_close(). As host_bpf_open(). */
int slots_open(struct host_bpf *bpf, struct err *e);
/*
 * Fill in mem->region with the slots that the machine of p's first vCPU has now; mem->remote is kept, and all
 * of mem in case of an error. *partial: some memory is not in there. An error says why the kernel does not tell.
 */
int slots_read(struct gmem *mem, bool *partial, const struct host_bpf *bpf, const struct process *p,
	       struct err *e);
/* Its second half, from what the kernel told; sorts the record. Slots on devices are left out. */
int slots_of_record(struct gmem *mem, bool *partial, struct slots_block *b, const struct process *p,
		    struct err *e);

/*
 * Numbers the machines of the process from 1 on, by the least descriptor of their vCPUs, and stores the number in each vCPU.
 * Sorts the vCPUs by descriptor, and drops those of machines with less than 1 MiB of memory, which are a VMM's helpers, if there are
 * others. Returns the number of machines, or a negative error.
 */
int slots_number_machines(struct process *p, const struct host_bpf *bpf, struct err *e);

#endif

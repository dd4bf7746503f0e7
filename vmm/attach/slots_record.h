/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slots_record: the data that a BPF program in the kernel (bpf/slots.bpf.c) and slots_kvm exchange.
 *
 * kvmprof writes which of its descriptors is a vCPU, and the program writes the memory slots of
 * that vCPU's machine. Both sides include this file, so it has only plain types of fixed sizes.
 */
#ifndef KVMPROF_VMM_ATTACH_SLOTS_RECORD_H
#define KVMPROF_VMM_ATTACH_SLOTS_RECORD_H

#define SLOTS_MAX 512u /* slots of a machine; power of two */

enum slots_status {
	SLOTS_NONE = 0, /* the program has not run */
	SLOTS_READ,	/* all slots are in the record */
	SLOTS_CHANGED,	/* the list changed meanwhile: try again */
	SLOTS_TOO_MANY, /* more than SLOTS_MAX */
	SLOTS_UNKNOWN,	/* this kernel stores them in an unknown way */
	SLOTS_NO_VCPU,	/* the descriptor leads to none */
};

/* A slot as the VMM passed it to KVM_SET_USER_MEMORY_REGION. */
struct slots_entry {
	unsigned long long gfn, npages; /* pages of 4 KiB */
	unsigned long long host;	/* address in the process of the machine */
	unsigned int flags, unused;	/* KVM_MEM_* */
};

struct slots_block {
	unsigned int fd;     /* in this process */
	unsigned int status; /* enum slots_status */
	unsigned int n, unused;
	/* equal for the vCPUs of one machine, different for others; 0: none */
	unsigned long long machine;
	struct slots_entry slot[SLOTS_MAX];
};

#endif

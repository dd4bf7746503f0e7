/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * peek_record: the data exchanged with the BPF program in the kernel (bpf/peek.bpf.c).
 *
 * One block of memory is shared. kvmprof writes a request, and the program writes the answer: the
 * registers of a vCPU, and each piece of guest memory that it read, with its address. Both sides
 * include this file, so it has only plain types of fixed sizes.
 */
#ifndef KVMPROF_VMM_PVM_PEEK_RECORD_H
#define KVMPROF_VMM_PVM_PEEK_RECORD_H

#include "vmm/attach/peek_status.h"

#define PEEK_REGIONS 16u /* GMEM_MAX_REGIONS */
#define PEEK_MEMBERS 8u
#define PEEK_PIECES 128u
#define PEEK_CHUNK 4096u /* bytes read at once */
#define PEEK_DATA 32768u /* power of two; more than a stack, and the entries that lead to it */
#define PEEK_GPRS 16u	 /* in the order of the instruction set: RAX, RCX, RDX, RBX, RSP ... */

enum peek_what {
	PEEK_SAMPLE = 0, /* run on the vCPU's processor, in an interrupt of it */
	PEEK_LOOK,	 /* run anywhere: whether the guest runs, and on which processor */
	PEEK_STATE,	 /* run anywhere, while the thread is stopped: only the registers */
};

struct peek_region {
	unsigned long long gpa, size, host;
};

struct peek_member {
	unsigned int off, len; /* len 0 to PEEK_CHUNK */
};

struct peek_question {
	unsigned int what; /* enum peek_what */
	unsigned int tid;  /* in the name space below */
	unsigned long long pidns_dev, pidns_ino;
	unsigned int fd, vcpu_id;
	unsigned long long vcpu, task; /* LOOK, STATE: kernel addresses from an earlier answer */
	unsigned int nregions;
	unsigned int stack_len;	    /* bytes from RSP on */
	unsigned long long current; /* guest address of the pointer to the task; 0: none */
	unsigned int nmembers;
	struct peek_member member[PEEK_MEMBERS]; /* members of that task */
	struct peek_region region[PEEK_REGIONS];
};

struct peek_regs {
	unsigned long long gpr[PEEK_GPRS], rip, rflags;
	unsigned long long cr0, cr2, cr3, cr4, efer, idt_base;
	unsigned int cpl, cs, ss;
	unsigned int known; /* all of them are valid */
};

/* Guest memory as it was at that moment. */
struct peek_piece {
	unsigned long long host; /* address in the VMM's process */
	unsigned int off, len;	 /* place in data[] */
};

struct peek_answer {
	unsigned int status;	    /* enum peek_status */
	unsigned int supported;	    /* LOOK: this KVM keeps all needed state in memory */
	unsigned int running, cpu;  /* LOOK: the guest runs, on this processor */
	unsigned int waiting;	    /* LOOK: its thread is ready but has no processor */
	unsigned int npieces, used; /* used: bytes used in data[] */
	unsigned long long vcpu, task;
	struct peek_regs regs;
	struct peek_piece piece[PEEK_PIECES];
	unsigned char data[PEEK_DATA + PEEK_CHUNK];
};

struct peek_block {
	struct peek_question q;
	struct peek_answer a;
};

#endif

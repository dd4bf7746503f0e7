/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * shared: what the plugin inside QEMU and the program have in common: one page of memory, and how
 * a sample passes from one to the other.
 *
 * The plugin counts instructions. When the count reaches `next` it fills in `regs` and writes to
 * the request descriptor, and the vCPU stands until the program has written to the answer
 * descriptor. In between nothing in the guest changes: the program reads its memory, which both
 * map, and sets `next` anew.
 *
 * The plugin believes nothing that it reads here but `next` and `frozen`; the program bounds what it takes.
 */
#ifndef KVMPROF_VMM_EXACT_SHARED_H
#define KVMPROF_VMM_EXACT_SHARED_H

#include <stdint.h>

#define EXACT_MAGIC UINT32_C(0x6b766d78)
/* Of this layout and of how the plugin counts: profiles say it, as counts of two may differ. */
#define EXACT_VERSION 1u
#define EXACT_SHARED_LEN 4096u

/* Of struct sample_regs.gpr's order (base/sample.h), as the block that is sampled began with them. */
struct exact_regs {
	uint64_t gpr[16];
	uint64_t rip, rflags;
	uint64_t cs, ss;
	uint64_t fs_base, gs_base, k_gs_base;
	uint64_t cr0, cr2, cr3, cr4, efer;
};

struct exact_shared {
	/* The plugin's, once it is loaded. */
	uint32_t magic, version;
	int32_t qemu_min, qemu_cur; /* versions of the plugin interface that QEMU knows */
	char error[128];	    /* why it refuses to work; "": it does not */
	/* The vCPU's. Others may read it at any time. */
	uint64_t count; /* instructions of blocks that have begun; a block is counted as a whole */
	/* The guest has turned its power off: no sample waits, and no instruction is executed any more. */
	uint32_t off;
	/* Of the sample that waits. */
	uint64_t at;	/* which instruction it is of, from 1 on */
	uint64_t ahead; /* bytes from regs.rip to that instruction */
	struct exact_regs regs;
	/* The program's, while the vCPU stands. */
	uint64_t next;	 /* the instruction that is sampled next */
	uint32_t frozen; /* not 0: what runs from now on is in no count by calls */
};

_Static_assert(sizeof(struct exact_shared) <= EXACT_SHARED_LEN, "one page");

#endif

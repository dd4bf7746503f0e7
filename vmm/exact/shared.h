/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * shared: what the plugin inside QEMU and the program have in common: one page of memory, and how
 * a sample passes from one to the other.
 *
 * The plugin counts instructions. When the count reaches `next` it fills in `regs` and writes to
 * the request descriptor, and the vCPU stands until the program has written to the answer
 * descriptor. In between nothing in the guest changes: the program reads its memory, which both
 * map, and sets `next` anew. It stands in the same way in front of each instruction that is one of the
 * places, and says which by `reached`.
 *
 * The plugin believes nothing that it reads here but what is the program's; the program bounds what it
 * takes.
 */
#ifndef KVMPROF_VMM_EXACT_SHARED_H
#define KVMPROF_VMM_EXACT_SHARED_H

#include <stdbool.h>
#include <stdint.h>

/* The plugin's answer to versions=on: this word, the least and the newest version, and the name of QEMU's target. */
#define EXACT_ANSWER "kvmprof-exact-plugin"
#define EXACT_MAGIC UINT32_C(0x6b766d78)
/* Of this layout and of how the plugin counts: profiles say it, as counts of two may differ. */
#define EXACT_VERSION 3u
#define EXACT_SHARED_LEN 4096u
#define EXACT_OFF 1u
#define EXACT_EXIT 2u
#define EXACT_EXIT_SHIFT 8
/* Code of a kernel that moves moves by multiples of this (x86's least CONFIG_PHYSICAL_ALIGN). */
#define EXACT_MOVES_BY (UINT64_C(2) << 20)
#define EXACT_MAX_PLACES 8u
#define EXACT_MAX_VCPUS 16u
#define EXACT_KERNEL_HALF (UINT64_C(1) << 63)
#define EXACT_IMAGE_HALF UINT64_C(0xffffffff80000000)

/* GS bases by which vCPUs are told apart. */
struct exact_cpus {
	uint64_t base[EXACT_MAX_VCPUS];
	unsigned int n;
};

/*
 * Which of at most `max` vCPUs has this base? QEMU does not tell. Linux has one for each, in the kernel's half
 * and below its image, and brings them up in order: a new base is that of the next one. The first
 * one's, until the real ones are there, is in the image. -1: it is none, or there are as many already.
 */
static inline int exact_cpu_of(struct exact_cpus *c, unsigned int max, uint64_t kernel_gs)
{
	unsigned int i = 0;

	if (!(kernel_gs & EXACT_KERNEL_HALF) || kernel_gs >= EXACT_IMAGE_HALF)
		return -1;
	while (i < c->n && c->base[i] != kernel_gs)
		i++;
	if (i == c->n) {
		if (i == max || i == EXACT_MAX_VCPUS)
			return -1;
		c->base[c->n++] = kernel_gs;
	}
	return (int)i;
}

#define EXACT_PAGE 0x1000u
#define EXACT_REAL_MODE 0x10000u /* addresses below are those of 16-bit code in its segment */

/*
 * A block that QEMU has translated at one address, and that runs at another one to which its page is
 * mapped, too: QEMU shares them.
 */
static inline bool exact_is_alias(uint64_t translated, uint64_t pc)
{
	return pc != translated && !((pc ^ translated) % EXACT_PAGE) && pc >= EXACT_REAL_MODE;
}

/* Of struct sample_regs.gpr's order (base/sample.h), as the block that is sampled began with them. */
struct exact_regs {
	uint64_t gpr[16];
	uint64_t rip, rflags;
	uint64_t cs, ss;
	uint64_t fs_base, gs_base, k_gs_base;
	uint64_t cr0, cr2, cr3, cr4, efer;
};
#define EXACT_REGISTERS (sizeof(struct exact_regs) / sizeof(uint64_t))
/* QEMU's names of them, in this order. */
#define EXACT_REGISTER_NAMES                                                                     \
	"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", \
		"r13", "r14", "r15", "rip", "eflags", "cs", "ss", "fs_base", "gs_base",          \
		"k_gs_base", "cr0", "cr2", "cr3", "cr4", "efer"

/* An instruction that the vCPU is to stand in front of, each time. */
struct exact_place {
	uint64_t linked; /* its address, but for a multiple of EXACT_MOVES_BY; never changes */
	uint64_t addr;	 /* its address; 0: not known yet */
};

struct exact_shared {
	/* The plugin's, once it is loaded. */
	uint32_t magic, version;
	int32_t qemu_min, qemu_cur; /* versions of the plugin interface that QEMU knows */
	char error[128];	    /* why it refuses to work; "": it does not */
	/* The vCPU's. Others may read it at any time. */
	uint64_t count; /* instructions of blocks that have begun; a block is counted as a whole */
	/*
	 * The guest ends itself by the instruction that comes, and stands in front of it for good.
	 * EXACT_OFF: its power is off; EXACT_EXIT and its number above: by isa-debug-exit, at PORT_DEBUG_EXIT (vmm/layout.h).
	 */
	uint32_t off;
	/* Of the sample that waits. */
	uint64_t at;	  /* which instruction it is of, from 1 on */
	uint64_t ahead;	  /* bytes from regs.rip to that instruction */
	uint32_t reached; /* 0: it is a sample; else 1 and the place that comes next: it is `at` */
	struct exact_regs regs;
	/* The program's, while the vCPU stands. */
	uint64_t next;	  /* the instruction that is sampled next */
	uint32_t frozen;  /* not 0: what runs from now on is in no count by calls */
	uint32_t anew;	  /* not 0: counts by calls begin at 0 with `at`; the plugin clears it */
	uint32_t part;	  /* counts by calls are of this part of the run from `at` on; only grows */
	uint32_t nplaces; /* before QEMU starts */
	struct exact_place place[EXACT_MAX_PLACES];
};

_Static_assert(sizeof(struct exact_shared) <= EXACT_SHARED_LEN, "one page");

#endif

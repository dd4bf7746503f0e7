/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * shared: the page of memory that the plugin inside QEMU and the program share, and the protocol
 * of a stop.
 *
 * The plugin counts instructions. When the count reaches `next`, it writes `regs` and sends a
 * token to the request socket, and the vCPU is stopped until the program sends a token to the
 * answer socket. Meanwhile nothing in the guest changes: the program reads guest memory, which
 * both map, and sets `next` again. The vCPU stops in the same way before each instruction that is
 * one of the places; `reached` identifies it.
 *
 * The plugin trusts only the members that the program writes; the program checks everything that
 * it reads (stop.h).
 */
#ifndef KVMPROF_VMM_EXACT_SHARED_H
#define KVMPROF_VMM_EXACT_SHARED_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The plugin's answer to versions=on: this word, the lowest and the newest version, and the name
 * of QEMU's target.
 */
#define EXACT_ANSWER "kvmprof-exact-plugin"
#define EXACT_MAGIC UINT32_C(0x6b766d78)
/*
 * Version of this layout and of the counting. It is stored in profiles, as counts of two versions
 * may differ.
 */
#define EXACT_VERSION 3u
#define EXACT_SHARED_LEN 4096u
#define EXACT_OFF 1u
#define EXACT_EXIT 2u
#define EXACT_EXIT_SHIFT 8
/* A relocated kernel moves by a multiple of this (the minimum of CONFIG_PHYSICAL_ALIGN on x86). */
#define EXACT_MOVES_BY (UINT64_C(2) << 20)
#define EXACT_MAX_PLACES 8u
#define EXACT_MAX_VCPUS 16u
#define EXACT_KERNEL_HALF (UINT64_C(1) << 63)
#define EXACT_IMAGE_HALF UINT64_C(0xffffffff80000000)

/* GS bases by which vCPUs are identified. */
struct exact_cpus {
	uint64_t base[EXACT_MAX_VCPUS];
	unsigned int n;
};

/*
 * Returns the vCPU (less than max) that has this GS base, and assigns a new base to the next vCPU.
 * QEMU does not report the vCPU. Linux has one base for each, in the kernel's half of the address
 * space and below its image, and brings vCPUs up in order. The first one's base is inside the
 * image at first. Returns -1 if it is no such base, or if all vCPUs have one already.
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
 * Returns whether a block that was translated at one address runs at another one to which the same
 * page is mapped: QEMU shares such blocks.
 */
static inline bool exact_is_alias(uint64_t translated, uint64_t pc)
{
	return pc != translated && !((pc ^ translated) % EXACT_PAGE) && pc >= EXACT_REAL_MODE;
}

/*
 * Registers at the start of the sampled block; gpr in the order of struct sample_regs.gpr
 * (base/sample.h).
 */
struct exact_regs {
	uint64_t gpr[16];
	uint64_t rip, rflags;
	uint64_t cs, ss;
	uint64_t fs_base, gs_base, k_gs_base;
	uint64_t cr0, cr2, cr3, cr4, efer;
};
#define EXACT_REGISTERS (sizeof(struct exact_regs) / sizeof(uint64_t))
/* QEMU's names of the registers, in this order. */
#define EXACT_REGISTER_NAMES                                                                     \
	"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", \
		"r13", "r14", "r15", "rip", "eflags", "cs", "ss", "fs_base", "gs_base",          \
		"k_gs_base", "cr0", "cr2", "cr3", "cr4", "efer"

/* An instruction before which the vCPU stops each time. */
struct exact_place {
	/* Link address, equal to the runtime address modulo EXACT_MOVES_BY; constant. */
	uint64_t linked;
	uint64_t addr; /* runtime address; 0: not known yet */
};

struct exact_shared {
	/* Written by the plugin once it is loaded. */
	uint32_t magic, version;
	int32_t qemu_min, qemu_cur; /* versions of the plugin interface that QEMU supports */
	char error[128];	    /* why the plugin refuses to work; "": it does not */
	/* Written by the vCPU's thread; may be read at any time. */
	uint64_t count; /* instructions of all blocks that have begun, whole blocks */
	/*
	 * Not 0: the next instruction ends the guest, and the vCPU stays stopped before it.
	 * EXACT_OFF: power-off. EXACT_EXIT, with the value above EXACT_EXIT_SHIFT: isa-debug-exit
	 * at PORT_DEBUG_EXIT (vmm/layout.h).
	 */
	uint32_t off;
	/* Describe the current stop. */
	uint64_t at;	  /* number of its instruction, from 1 */
	uint64_t ahead;	  /* bytes from regs.rip to that instruction */
	uint32_t reached; /* 0: a sample; else 1 + index of the place, and `at` comes next */
	struct exact_regs regs;
	/* Written by the program while the vCPU is stopped. */
	uint64_t next;	 /* the instruction that is sampled next */
	uint32_t frozen; /* not 0: later instructions are not counted by call chain */
	/* Not 0: counts by call chain restart at 0 with `at`; cleared by the plugin. */
	uint32_t anew;
	uint32_t part;	  /* part of the run for counts from `at` on; only increases */
	uint32_t nplaces; /* written before QEMU starts */
	struct exact_place place[EXACT_MAX_PLACES];
};

_Static_assert(sizeof(struct exact_shared) <= EXACT_SHARED_LEN, "one page");

#endif

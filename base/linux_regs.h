/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linux_regs: the registers of a program that entered the kernel, at the end of its
 * kernel stack (task_pt_regs(), arch/x86/include/asm/processor.h).
 *
 * The last thing on the stack is what the processor pushed, or system call entry in
 * its stead: ip, cs, flags, sp, ss. Kernels with CONFIG_X86_FRED (6.9) leave two
 * words above it, TOP_OF_KERNEL_STACK_PADDING, on processors without FRED as well.
 * Which of the two a stack is, its words tell. With FRED the upper parts of the words
 * of cs and ss have facts about the event.
 */
#ifndef KVMPROF_BASE_LINUX_REGS_H
#define KVMPROF_BASE_LINUX_REGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* struct pt_regs, arch/x86/include/asm/ptrace.h (64-bit): offsets of what we need. */
enum {
	PT_R13 = 16,
	PT_BP = 32,
	PT_R10 = 56,
	PT_AX = 80,
	PT_DX = 96,
	PT_DI = 112,
	PT_IP = 128,
	PT_CS = 136,
	PT_SP = 152,
};
#define LINUX_REGS_LEN 168u

/* Its last five words: an interrupt return frame (SDM vol. 3, "64-Bit Mode Stack Frame"). */
enum {
	IRET_IP = 0,
	IRET_CS = 8,
	IRET_SP = 24,
};
#define LINUX_IRET_LEN 40u

/*
 * What a task that does not run has at its stack pointer: struct inactive_task_frame,
 * arch/x86/include/asm/switch_to.h (4.9): r15, r14, r13, r12, bx, bp, ret_addr. 5.4 and
 * later stable kernels of 4.14 and 4.19 have flags below them ("sched/x86: Save [ER]FLAGS
 * on context switch"), 5.10 has not any more.
 */
enum { INACTIVE_R13 = 16, INACTIVE_BX = 32, INACTIVE_BP = 40, INACTIVE_RET = 48 };
#define LINUX_INACTIVE_LEN 56u /* without the flags */
#define LINUX_INACTIVE_FLAGS 8u

/* THREAD_SIZE on x86-64 since 3.15, but for kernels with KASAN. */
#define LINUX_STACK_LEN 16384u

#define LINUX_USER_CS64 0x33u /* of programs that are not 32-bit ones */
/*
 * No program has addresses of more bits: 47, and with five-level paging 56 for a program that
 * asks for them (Documentation/arch/x86/x86_64/5level-paging.rst).
 */
#define LINUX_USER_BITS 56u

/* The part of a selector's word that is the selector. */
static inline uint16_t linux_regs_selector(uint64_t word)
{
	return (uint16_t)word;
}

struct linux_regs {
	uint64_t ip, sp;
	uint16_t cs;
};

/*
 * end: behind the last byte of a stack of which len bytes are there; at least `least`
 * of them (LINUX_REGS_LEN, or LINUX_IRET_LEN) are what is looked for. false: the stack
 * does not end with a program's registers. Any thread, no allocation.
 */
bool linux_regs_at_end(const uint8_t *end, size_t len, size_t least, struct linux_regs *out);

#endif

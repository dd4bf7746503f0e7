/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linux_regs: finds the registers of a program that entered the Linux kernel, at the end of its
 * kernel stack (task_pt_regs(), arch/x86/include/asm/processor.h).
 *
 * The stack ends with the words that the processor pushed, or that the system call entry stored in
 * their place: ip, cs, flags, sp, ss. Kernels with CONFIG_X86_FRED (6.9) leave two words above them
 * (TOP_OF_KERNEL_STACK_PADDING), on processors without FRED as well. The contents of the words show
 * which of the two layouts a stack has. With FRED the upper parts of the words of cs and ss hold
 * facts about the event.
 */
#ifndef KVMPROF_BASE_LINUX_REGS_H
#define KVMPROF_BASE_LINUX_REGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* struct pt_regs, arch/x86/include/asm/ptrace.h (64-bit): offsets in bytes. */
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

/*
 * The last five words of struct pt_regs: an interrupt return frame (SDM vol. 3, "64-Bit Mode Stack
 * Frame").
 */
enum {
	IRET_IP = 0,
	IRET_CS = 8,
	IRET_SP = 24,
};
#define LINUX_IRET_LEN 40u

/*
 * The frame at the stack pointer of a task that does not run: struct inactive_task_frame,
 * arch/x86/include/asm/switch_to.h (4.9): r15, r14, r13, r12, bx, bp, ret_addr. Kernel 5.4 and
 * later stable kernels of 4.14 and 4.19 have flags below them ("sched/x86: Save [ER]FLAGS on
 * context switch"); 5.10 does not have them any more.
 */
enum { INACTIVE_R13 = 16, INACTIVE_BX = 32, INACTIVE_BP = 40, INACTIVE_RET = 48 };
#define LINUX_INACTIVE_LEN 56u /* without the flags */
#define LINUX_INACTIVE_FLAGS 8u

/* THREAD_SIZE on x86-64 since 3.15, except for kernels with KASAN. */
#define LINUX_STACK_LEN 16384u

#define LINUX_USER_CS64 0x33u /* code selector of 64-bit programs */
/*
 * The maximum number of address bits of a program: 47, and with five-level paging 56 for a program
 * that requests them (Documentation/arch/x86/x86_64/5level-paging.rst).
 */
#define LINUX_USER_BITS 56u

/* Returns the selector, which is the low 16 bits of the stored word. */
static inline uint16_t linux_regs_selector(uint64_t word)
{
	return (uint16_t)word;
}

/* The registers of the interrupted program. */
struct linux_regs {
	uint64_t ip, sp;
	uint16_t cs;
};

/*
 * Finds the program's registers at the end of a kernel stack. `end` points behind the stack's last
 * byte, and len bytes before it are readable; `least` is LINUX_REGS_LEN or LINUX_IRET_LEN, the
 * number of bytes that must be there. Returns false, with *out unchanged, if the stack does not end
 * with a program's registers. Any thread may call it.
 */
bool linux_regs_at_end(const uint8_t *end, size_t len, size_t least, struct linux_regs *out);

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Ring 3: the same loops, which run natively where ring 0 is interpreted. rsp and rbp are at the
 * low end of user_stack.
 */
#include "../demo/demo.h"

/* As in guest/demo: start.S enters here, and int 0x80 returns. */
void user_main(u64 which, u64 budget)
{
	volatile u64 *box = (volatile u64 *)user_stack;
	u64 rsp = box[0], rbp = box[1];

	(void)which;
	__asm__ volatile("movq %%rsp, %%r10\n\t"
			 "movq %%rbp, %%r11\n\t"
			 "movq %0, %%rsp\n\t"
			 "movq %1, %%rbp\n\t"
			 "rdtsc\n\t"
			 "shlq $32, %%rdx\n\t"
			 "orq %%rdx, %%rax\n\t"
			 "leaq (%%rax, %2), %%r8\n"
			 "1:\trdtsc\n\t"
			 "shlq $32, %%rdx\n\t"
			 "orq %%rdx, %%rax\n\t"
			 "cmpq %%r8, %%rax\n\t"
			 "jb 1b\n\t"
			 "movq %%r10, %%rsp\n\t"
			 "movq %%r11, %%rbp"
			 :
			 : "r"(rsp), "r"(rbp), "r"(budget)
			 : "rax", "rdx", "r8", "r10", "r11", "memory");
	__asm__ volatile("int $0x80" : : "a"(0ul));
	for (;;)
		;
}

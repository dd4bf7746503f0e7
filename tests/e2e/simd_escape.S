// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A kernel that uses the number of rsp in SIMD instructions, in ring 0. It prints 16 digits of
 * what it read and ends with "done". -DREAD reads rsp with F2 and 66 in front, -DWRITE writes
 * rsp so, -DPIVOT reads and then writes it; -DPLAIN has no 66, so that the instructions are
 * ones that kvmprof finishes. Loaded where it is linked, entered in 64-bit mode.
 */
#ifdef PLAIN
#define BOTH
#else
#define BOTH .byte 0xf2, 0x66;
#endif
	.text
	.globl _start
_start:
	cli
	lea stack_end(%rip), %rsp
	mov %cr4, %rax
	or $0x600, %rax			/* OSFXSR, OSXMMEXCPT */
	mov %rax, %cr4
	mov %cr0, %rax
	and $~0xc, %rax			/* neither EM nor TS */
	or $2, %rax
	mov %rax, %cr0
	lea text_begin(%rip), %rsi
	call print
#if defined(READ) || defined(PIVOT)
	.byte 0xf2, 0x66, 0x48, 0x0f, 0x2a, 0xc4	/* cvtsi2sd xmm0, rsp */
	.byte 0xf2, 0x48, 0x0f, 0x2c, 0xc0		/* cvttsd2si rax, xmm0 */
	call print_hex
#endif
#if defined(WRITE) || defined(PIVOT)
	mov $0x414141414140, %rax
	.byte 0xf2, 0x48, 0x0f, 0x2a, 0xc0		/* cvtsi2sd xmm0, rax */
	.byte 0xf2, 0x66, 0x48, 0x0f, 0x2c, 0xe0	/* cvttsd2si rsp, xmm0 */
	lea stack_end(%rip), %rsp
#endif
#ifdef PLAIN
	.byte 0xf2, 0x48, 0x0f, 0x2a, 0xc4		/* cvtsi2sd xmm0, rsp */
	.byte 0xf2, 0x48, 0x0f, 0x2c, 0xe0		/* cvttsd2si rsp, xmm0 */
	mov %rsp, %rax
	call print_hex
	lea stack_end(%rip), %rax
	call print_hex
#endif
	lea text_done(%rip), %rsi
	call print
	hlt
1:	jmp 1b

print:	mov $0x3f8, %dx
1:	lodsb
	test %al, %al
	jz 2f
	out %al, %dx
	jmp 1b
2:	ret

print_hex:
	mov %rax, %rbx
	mov $16, %ecx
	mov $0x3f8, %dx
1:	rol $4, %rbx
	mov %bl, %al
	and $15, %al
	add $'0', %al
	cmp $'9', %al
	jbe 2f
	add $39, %al
2:	out %al, %dx
	dec %ecx
	jnz 1b
	mov $10, %al
	out %al, %dx
	ret

text_begin:	.asciz "begin\n"
text_done:	.asciz "done\n"
	.bss
	.align 16
	.skip 4096
stack_end:

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A kernel that single-steps itself: with the trap flag set it calls `marked` eight times,
 * and prints how many #DB it had and what DR6 said in all of them ("db 41 dr6 4000"), and
 * DR7 and DR3, which it has written before. Who watches it from outside must not change a
 * digit. With -DPROMPT it prompts and waits instead. Loaded where it is linked, entered in 64-bit mode with that place mapped.
 */
	.text
	.globl _start, marked
_start:
	cli
	lea stack_end(%rip), %rsp
#ifdef PROMPT	/* says one thing, without an end of line, and waits for ever */
	lea text_prompt(%rip), %rsi
	mov $0x3f8, %dx
1:	lodsb
	test %al, %al
	jz 2f
	out %al, %dx
	jmp 1b
2:	pause
	jmp 2b
text_prompt:	.asciz "hello\r\nlogin: "
#endif
	lea db(%rip), %rax
	lea idt+16(%rip), %rdi		/* gate 1 */
	mov %ax, (%rdi)
	mov %cs, 2(%rdi)
	movw $0x8e00, 4(%rdi)
	shr $16, %rax
	mov %ax, 6(%rdi)
	shr $16, %rax
	mov %eax, 8(%rdi)
	lea idt(%rip), %rax
	mov %rax, idtr+2(%rip)
	lidt idtr(%rip)
	mov $0x1234560, %rax
	mov %rax, %dr3
	mov $0x400, %rax		/* nothing enabled */
	mov %rax, %dr7
	xor %eax, %eax
	mov %rax, %dr6
	mov $8, %ebp
1:	pushfq
	orq $0x100, (%rsp)
	popfq
	nop
	call marked
	pushfq
	andq $~0x100, (%rsp)
	popfq
	dec %ebp
	jnz 1b
	lea text_db(%rip), %rsi
	mov count(%rip), %rdi
	call line
	lea text_dr6(%rip), %rsi
	mov seen(%rip), %rdi
	call line
	lea text_dr7(%rip), %rsi
	mov %dr7, %rdi
	call line
	lea text_dr3(%rip), %rsi
	mov %dr3, %rdi
	call line
2:	mov $0xfe, %al
	out %al, $0x64
	hlt
	jmp 2b

marked:
	push %rbx
	mov %rsp, %rbx
	pop %rbx
	ret

db:	push %rax
	incq count(%rip)
	mov %dr6, %rax
	and $0xe00f, %eax
	or %rax, seen(%rip)
	xor %eax, %eax
	mov %rax, %dr6
	pop %rax
	iretq

/* The text at rsi, then rdi in hexadecimal. */
line:	mov $0x3f8, %dx
1:	lodsb
	test %al, %al
	jz 2f
	out %al, %dx
	jmp 1b
2:	mov $8, %ecx
3:	rol $4, %edi
	mov %edi, %eax
	and $15, %al
	add $'0', %al
	cmp $'9', %al
	jbe 4f
	add $39, %al
4:	out %al, %dx
	dec %ecx
	jnz 3b
	mov $10, %al
	out %al, %dx
	ret

	.section .rodata
text_db:	.asciz "db "
text_dr6:	.asciz "dr6 "
text_dr7:	.asciz "dr7 "
text_dr3:	.asciz "dr3 "

	.data
	.balign 16
count:	.quad 0
seen:	.quad 0
idtr:	.word 0xfff
	.quad 0
	.balign 4096
idt:	.skip 4096
stack:	.skip 4096
stack_end:
	.section .note.GNU-stack,"",@progbits

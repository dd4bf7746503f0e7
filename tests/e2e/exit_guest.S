// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A kernel that does nothing but leave the guest: -DPIO=N writes N times to a port, -DMMIO=N
 * reads N times where no device is; then it resets the machine. -DFNSAVE uses an instruction there
 * that KVM cannot emulate. -DTSC=N writes "T" after N cycles, looks at the time stamp counter for
 * as many, and writes "back" if it went back meanwhile. Loaded where it is linked,
 * entered in 64-bit mode with the first 4 GiB mapped as they are.
 */
	.macro time		/* rax */
	rdtsc
	shl $32, %rdx
	or %rdx, %rax
	.endm
	.macro put c
	mov $\c, %al
	mov $0x3f8, %edx
	out %al, %dx
	.endm

	.text
	.globl _start
_start:
	cli
#ifdef PIO
	mov $PIO, %ecx
	mov $0x80, %edx
1:	out %al, %dx
	dec %ecx
	jnz 1b
#endif
#ifdef MMIO
	mov $MMIO, %ecx
	mov $0xfeb00000, %ebx
2:	mov (%rbx), %eax
	dec %ecx
	jnz 2b
#endif
#ifdef FNSAVE
	mov $0xfeb00000, %ebx
	fnsave (%rbx)
#endif
#ifdef TSC
	time
	lea TSC(%rax), %rbx
4:	time
	cmp %rbx, %rax
	jb 4b
	mov %rax, %rcx			/* the last that was seen */
	put 'T'
	put '\n'
	add $TSC, %rbx
5:	time
	cmp %rcx, %rax
	jb 6f
	mov %rax, %rcx
	cmp %rbx, %rax
	jb 5b
	jmp 7f
6:	put 'b'
	put 'a'
	put 'c'
	put 'k'
	put '\n'
7:
#endif
	mov $0xfe, %al
	out %al, $0x64
3:	jmp 3b

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A kernel that does nothing but leave the guest: -DPIO=N writes N times to a port, -DMMIO=N
 * reads N times where no device is; then it resets the machine. -DXSAVE uses an instruction there
 * that KVM cannot emulate. Loaded where it is linked,
 * entered in 64-bit mode with the first 4 GiB mapped as they are.
 */
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
#ifdef XSAVE
	mov $0xfeb00000, %ebx
	mov %cr4, %rax
	or $0x40000, %eax		/* OSXSAVE */
	mov %rax, %cr4
	xsave64 (%rbx)
#endif
	mov $0xfe, %al
	out %al, $0x64
3:	jmp 3b

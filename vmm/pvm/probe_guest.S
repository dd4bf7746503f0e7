/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The code of the probe guest. Data of ours, never executed here.
 *
 * KVM_HC_SEND_IPI is hypercall 10 with an empty destination bitmap: a KVM that implements it
 * returns at once. LZCNT and TZCNT are BSR and BSF behind a prefix that older processors ignore.
 */
#include "vmm/pvm/probe_guest.h"

	.section .rodata
	.balign 16
	.global probe_code, probe_code_end, probe_trip, probe_speed, probe_lstar, probe_fault
	.global probe_int3, probe_breakpoint, probe_ipi_intel, probe_ipi_amd
	.global probe_zero_counts, probe_leaf7, probe_user, probe_user_end
probe_code:
probe_trip:
	outb %al, $PROBE_PORT_START
	outb %al, $PROBE_PORT_DONE
probe_speed:
	outb %al, $PROBE_PORT_START
	movl $PROBE_LOOP, %ecx
1:	decl %ecx
	jnz 1b
	outb %al, $PROBE_PORT_DONE
probe_lstar:	/* SYSCALL arrives here; OUT in ring 3 would fault */
	outb %al, $PROBE_PORT_DONE
probe_fault:
	outb %al, $PROBE_PORT_FAULT
probe_int3:
	int3
	outb %al, $PROBE_PORT_FAULT
probe_breakpoint:	/* gate 3 */
	outb %al, $PROBE_PORT_DONE
probe_ipi_intel:
	vmcall
	outb %al, $PROBE_PORT_DONE
probe_ipi_amd:
	vmmcall
	outb %al, $PROBE_PORT_DONE
probe_zero_counts:
	movl $0x10000, %eax
	lzcntl %eax, %eax
	cmpl $15, %eax
	jne 2f
	xorl %ecx, %ecx
	tzcntl %ecx, %eax
	cmpl $32, %eax
	jne 2f
	outb %al, $PROBE_PORT_DONE
2:	outb %al, $PROBE_PORT_FAULT
probe_leaf7:	/* the probe's CPUID has no bit of this leaf */
	movl $7, %eax
	xorl %ecx, %ecx
	cpuid
	orl %ecx, %ebx
	jnz 2b
	outb %al, $PROBE_PORT_DONE
probe_code_end:
probe_user:
	syscall
probe_user_end:

	.section .note.GNU-stack, "", @progbits

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/pvm/probe_guest.h"

#define STR_(x) #x
#define STR(x) STR_(x)

/*
 * Kept as data of ours, never executed here. KVM_HC_SEND_IPI is hypercall 10
 * with an empty destination bitmap: a KVM that implements it returns at once.
 */
__asm__(".pushsection .rodata\n"
	".balign 16\n"
	".global probe_code, probe_code_end, probe_speed, probe_lstar, probe_fault\n"
	".global probe_int3, probe_breakpoint, probe_ipi_intel, probe_ipi_amd\n"
	".global probe_user, probe_user_end\n"
	"probe_code:\n"
	"probe_speed:\n"
	"	outb %al, $" STR(
		PROBE_PORT_START) "\n"
				  "	movl $" STR(PROBE_LOOP) ", %ecx\n"
								"1:	decl %ecx\n"
								"	jnz 1b\n"
								"	outb %al, $" STR(
									PROBE_PORT_DONE) "\n"
											 "probe_"
											 "lstar:\n" /* SYSCALL arrives here; OUT in ring 3 would fault */
											 "	out"
											 "b %al, "
											 "$" STR(PROBE_PORT_DONE) "\n"
														  "probe_fault:\n"
														  "	outb %al, $" STR(PROBE_PORT_FAULT) "\n"
																			   "probe_int3:\n"
																			   "	int3\n"
																			   "	outb %al, $" STR(PROBE_PORT_FAULT) "\n"
																								   "probe_breakpoint:\n" /* gate 3 */
																								   "	outb %al, $" STR(PROBE_PORT_DONE) "\n"
																													  "probe_ipi_intel:\n"
																													  "	vmcall\n"
																													  "	outb %al, $" STR(PROBE_PORT_DONE) "\n"
																																		  "probe_ipi_amd:\n"
																																		  "	vmmcall\n"
																																		  "	outb %al, $" STR(
																																			  PROBE_PORT_DONE) "\n"
																																					   "probe_code_end:\n"
																																					   "probe_user:\n"
																																					   "	syscall\n"
																																					   "probe_user_end:\n"
																																					   ".popsection\n");

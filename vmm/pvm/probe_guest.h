/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * probe_guest: the code that the quirk probe runs in ring 0 and ring 3.
 *
 * It is position-independent, and copied to PROBE_CODE of a 64 KiB guest whose pages are mapped one
 * to one. Each probe reports by an OUT to one of the ports below. probe_guest.S includes this file,
 * too.
 */
#ifndef KVMPROF_VMM_PVM_PROBE_GUEST_H
#define KVMPROF_VMM_PVM_PROBE_GUEST_H

#define PROBE_PORT_START 0x10 /* trip, speed: start of the timed code */
#define PROBE_PORT_DONE 0x11  /* the probe ended as expected */
#define PROBE_PORT_FAULT 0x12 /* an exception handler ran instead */

#define PROBE_LOOP 300 /* iterations of two instructions */

/* Layout of the guest's memory. */
#define PROBE_MEM 0x10000
#define PROBE_PML4 0x1000
#define PROBE_PDPT 0x2000
#define PROBE_PD 0x3000
#define PROBE_PT 0x4000
#define PROBE_GDT 0x5000
#define PROBE_IDT 0x5100
#define PROBE_IDT_GATES 32
#define PROBE_TSS 0x5400
#define PROBE_STACK_TOP 0x9000
#define PROBE_CODE 0xa000      /* supervisor page */
#define PROBE_USER_CODE 0xc000 /* user page */
#define PROBE_USER_STACK_TOP 0xe000

#ifndef __ASSEMBLER__
/* Start and end of the supervisor code, entry points in it, and the user code. */
extern const char probe_code[], probe_code_end[];
extern const char probe_trip[], probe_speed[], probe_lstar[], probe_fault[], probe_int3[],
	probe_breakpoint[];
extern const char probe_ipi_intel[], probe_ipi_amd[], probe_zero_counts[], probe_leaf7[];
extern const char probe_user[], probe_user_end[];
#endif

#endif

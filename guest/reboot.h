/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ends the machine, for programs that are its init. */
#ifndef GUEST_REBOOT_H
#define GUEST_REBOOT_H

#include "syscall.h"

/* include/uapi/linux/reboot.h */
#define REBOOT_MAGIC1 0xfee1dead
#define REBOOT_MAGIC2 672274793
#define REBOOT_RESTART 0x01234567
#define REBOOT_POWER_OFF 0x4321fedc

/*
 * Powers the machine off. A kernel without a way to power off turns POWER_OFF into a halt: the CPU
 * stops with interrupts off and the virtual machine stays forever. On a PC without ACPI, which
 * provides that way, it restarts instead, because a reset also ends the VMM's run.
 */
static inline void __attribute__((noreturn)) end_machine(void)
{
	if (syscall2(NR_ACCESS, "/sys/firmware/acpi", 0) == 0)
		syscall3(NR_REBOOT, REBOOT_MAGIC1, REBOOT_MAGIC2, REBOOT_POWER_OFF);
	syscall3(NR_REBOOT, REBOOT_MAGIC1, REBOOT_MAGIC2, REBOOT_RESTART);
	for (;;)
		syscall1(NR_EXIT, 0);
}

#endif

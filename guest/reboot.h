/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The end of the machine, for programs in here that are its init.
 */
#ifndef GUEST_REBOOT_H
#define GUEST_REBOOT_H

#include "syscall.h"

/* include/uapi/linux/reboot.h */
#define REBOOT_MAGIC1 0xfee1dead
#define REBOOT_MAGIC2 672274793
#define REBOOT_RESTART 0x01234567
#define REBOOT_POWER_OFF 0x4321fedc

/*
 * A kernel without a way to power off turns POWER_OFF into a halt: the CPU
 * stands still with interrupts off and the virtual machine stays for ever.
 * Without ACPI, which is that way on a PC, restart instead: to the VMM a reset
 * is the end as well.
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

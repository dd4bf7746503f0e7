/* SPDX-License-Identifier: GPL-2.0-or-later */
/* dev: the services that each small platform device needs from the machine. */
#ifndef KVMPROF_VMM_DEV_DEV_H
#define KVMPROF_VMM_DEV_DEV_H

#include <stdint.h>

/* Sets the level of an ISA interrupt line. Any thread may call it. */
struct dev_irq {
	void (*set)(void *ctx, unsigned int irq, int level);
	void *ctx;
};

/* Sends a message-signalled interrupt (SDM vol. 3, 11.11). Any thread may call it. */
struct dev_msi {
	void (*send)(void *ctx, uint64_t addr, uint32_t data);
	void *ctx;
};

enum dev_end {
	DEV_END_RESET = 1, /* reset by the keyboard controller or the reset port */
	DEV_END_POWEROFF,  /* ACPI S5 */
};

/* Called when the guest requests a reset or power off, on the thread of the vCPU that did. */
struct dev_power {
	void (*end)(void *ctx, enum dev_end how);
	void *ctx;
};

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dev: what every small platform device needs from the machine around it.
 */
#ifndef KVMPROF_VMM_DEV_DEV_H
#define KVMPROF_VMM_DEV_DEV_H

#include <stdint.h>

/* Drive an ISA interrupt line; may be called from any thread. */
struct dev_irq {
	void (*set)(void *ctx, unsigned int irq, int level);
	void *ctx;
};

/* Send a message-signalled interrupt (SDM vol. 3, 11.11); any thread. */
struct dev_msi {
	void (*send)(void *ctx, uint64_t addr, uint32_t data);
	void *ctx;
};

enum dev_end {
	DEV_END_RESET = 1, /* keyboard controller or reset port */
	DEV_END_POWEROFF,  /* ACPI S5 */
};

/* The guest asked for an end; called on the vCPU thread that did. */
struct dev_power {
	void (*end)(void *ctx, enum dev_end how);
	void *ctx;
};

#endif

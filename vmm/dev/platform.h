/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * platform: the small PC devices that a kernel pokes at while it boots.
 *
 * i8042 keyboard controller (reset line), CMOS clock, ACPI PM1 block (power off), POST port.
 */
#ifndef KVMPROF_VMM_DEV_PLATFORM_H
#define KVMPROF_VMM_DEV_PLATFORM_H

#include "base/buf.h"
#include "base/cursor.h"
#include "base/err.h"
#include "vmm/bus.h"
#include "vmm/dev/dev.h"

#include <pthread.h>

struct platform_state {
	uint8_t cmos_index;
	uint8_t kbd_command; /* i8042 command whose data byte is still to come, 0 none */
	uint8_t kbd_ctr;     /* controller command byte */
	uint8_t kbd_out;     /* byte waiting for the guest, valid with kbd_full */
	bool kbd_full;
	uint16_t pm1_status, pm1_enable, pm1_control;
};

struct platform {
	struct dev_power power;
	pthread_mutex_t lock; /* of s: any vCPU's thread; not held while the power goes */
	struct platform_state s;
};

/* -EBUSY, -ENOSPC: the bus has no place for it. deinit() where the ports are not used any more. */
int platform_init(struct platform *p, struct bus *bus, struct dev_power power);
void platform_deinit(struct platform *p);

/* For a snapshot (snapshot.h); `platform` is a struct platform. The clock is the host's. */
#define PLATFORM_STATE_VERSION 1u
int platform_save(void *platform, struct buf *out, struct err *e);
int platform_restore(void *platform, struct cursor *in, struct err *e);

#endif

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

/*
 * A port whose write ends the run with the written number.
 *
 * Where QEMU's isa-debug-exit is by default (hw/misc/debugexit.c: iobase 0x501, iosize 2),
 * so that kernels made for that find it. The number is taken as it is; QEMU exits with
 * 2 * number + 1. A byte, a word or a double word; reads give 0.
 */
struct platform_exit {
	void (*end)(void *ctx, uint32_t status); /* on the vCPU's thread that wrote */
	void *ctx;
};

/* As bus_add(). */
int platform_exit_init(struct platform_exit *d, struct bus *bus,
		       void (*end)(void *ctx, uint32_t status), void *ctx);

/* For a snapshot (snapshot.h); `platform` is a struct platform. The clock is the host's. */
#define PLATFORM_STATE_VERSION 1u
int platform_save(void *platform, struct buf *out, struct err *e);
int platform_restore(void *platform, struct cursor *in, struct err *e);

#endif

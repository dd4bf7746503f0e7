/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * platform: the small PC devices that a kernel accesses while it boots.
 *
 * i8042 keyboard controller (reset line), CMOS clock, ACPI PM1 block (power off), POST port. vCPU
 * threads access the ports; the thread that creates the machine calls the functions.
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
	uint8_t kbd_command; /* i8042 command whose data byte is expected; 0: none */
	uint8_t kbd_ctr;     /* controller command byte */
	uint8_t kbd_out;     /* byte for the guest, valid with kbd_full */
	bool kbd_full;
	uint16_t pm1_status, pm1_enable, pm1_control;
};

struct platform {
	struct dev_power power;
	pthread_mutex_t lock; /* protects s; not held while power.end() is called */
	struct platform_state s;
};

/*
 * Initialises *p and adds its ports. Returns 0, or -EBUSY or -ENOSPC of the bus. platform_deinit()
 * releases it when the ports are not used any more.
 */
int platform_init(struct platform *p, struct bus *bus, struct dev_power power);
void platform_deinit(struct platform *p);

/*
 * A port whose write ends the run with the written number.
 *
 * It is where QEMU's isa-debug-exit is by default (hw/misc/debugexit.c: iobase 0x501, iosize 2), so
 * that kernels made for that find it. The number is used unchanged, while QEMU exits with 2 *
 * number + 1. A write may have one, two or four bytes; reads return 0.
 */
struct platform_exit {
	void (*end)(void *ctx, uint32_t status); /* on the thread of the vCPU that wrote */
	void *ctx;
};

/* Adds the port; *d must outlive the bus. Returns as bus_add(). */
int platform_exit_init(struct platform_exit *d, struct bus *bus,
		       void (*end)(void *ctx, uint32_t status), void *ctx);

/* The version of the format that platform_save() writes. */
#define PLATFORM_STATE_VERSION 1u
/* Saves the state of the struct platform at `platform` for a snapshot (snapshot.h). Returns 0. */
int platform_save(void *platform, struct buf *out, struct err *e);
/*
 * Restores what platform_save() has saved; the CMOS clock shows the host's time. Returns 0, or
 * -EINVAL with *e recorded.
 */
int platform_restore(void *platform, struct cursor *in, struct err *e);

#endif

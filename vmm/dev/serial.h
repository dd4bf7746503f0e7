/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * serial: a 16550A UART, the guest's console.
 *
 * Output is passed on byte by byte; input comes from serial_input(). The transmitter is always
 * empty, so a THRE interrupt follows each write at once. Source: National Semiconductor PC16550D
 * data sheet, 8.0 "Registers". vCPU threads access the ports; the thread that creates the machine
 * calls the functions, unless stated otherwise.
 */
#ifndef KVMPROF_VMM_DEV_SERIAL_H
#define KVMPROF_VMM_DEV_SERIAL_H

#include "base/buf.h"
#include "base/cursor.h"
#include "base/err.h"
#include "vmm/bus.h"
#include "vmm/dev/dev.h"

#include <pthread.h>
#include <stddef.h>

#define SERIAL_FIFO 64

struct serial {
	pthread_mutex_t lock;
	struct dev_irq irq;
	void (*out)(void *ctx, uint8_t byte); /* called on the vCPU's thread, with the lock held */
	void *ctx;
	uint8_t ier, lcr, mcr, scr, fcr, dll, dlm;
	bool thre_pending;
	int level; /* last level of the interrupt line */
	uint8_t rx[SERIAL_FIFO];
	unsigned int rx_head, rx_n;
	uint64_t bytes_out;
};

/*
 * Initialises *s and adds its ports. out(ctx, byte) gets the output. Returns as bus_add().
 * serial_deinit() releases it.
 */
int serial_init(struct serial *s, struct bus *bus, struct dev_irq irq,
		void (*out)(void *ctx, uint8_t byte), void *ctx);
void serial_deinit(struct serial *s);

/* The version of the format that serial_save() writes. */
#define SERIAL_STATE_VERSION 1u
/* Saves the state of the struct serial at `serial` for a snapshot (snapshot.h). Returns 0. */
int serial_save(void *serial, struct buf *out, struct err *e);
/*
 * Restores what serial_save() has saved. The interrupt controller restores the level of the line.
 * Returns 0, or -EINVAL with *e recorded.
 */
int serial_restore(void *serial, struct cursor *in, struct err *e);

/* Queues bytes for the guest. Returns how many found room. Any thread may call it. */
size_t serial_input(struct serial *s, const uint8_t *data, size_t len);

#endif

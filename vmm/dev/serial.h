/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * serial: a 16550A UART, the guest's console.
 *
 * Output is handed on byte by byte; input comes from serial_input(). The
 * transmitter is always empty, so a THRE interrupt follows each write at once.
 * Source: National Semiconductor PC16550D data sheet, 8.0 "Registers".
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
	void (*out)(void *ctx, uint8_t byte); /* called with the lock held */
	void *ctx;
	uint8_t ier, lcr, mcr, scr, fcr, dll, dlm;
	bool thre_pending;
	int level; /* what the line was last set to */
	uint8_t rx[SERIAL_FIFO];
	unsigned int rx_head, rx_n;
	uint64_t bytes_out;
};

int serial_init(struct serial *s, struct bus *bus, struct dev_irq irq,
		void (*out)(void *ctx, uint8_t byte), void *ctx);
void serial_deinit(struct serial *s);

/*
 * For a snapshot (snapshot.h); `serial` is a struct serial. The interrupt controller has
 * the level of its line.
 */
#define SERIAL_STATE_VERSION 1u
int serial_save(void *serial, struct buf *out, struct err *e);
int serial_restore(void *serial, struct cursor *in, struct err *e);

/* Queue bytes for the guest; returns how many found room. Any thread. */
size_t serial_input(struct serial *s, const uint8_t *data, size_t len);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bus: which device answers a port.
 *
 * Registration happens before the vCPUs start; afterwards the table is
 * fixed but for counts, and every vCPU thread may call bus_io(). Devices lock themselves.
 */
#ifndef KVMPROF_VMM_BUS_H
#define KVMPROF_VMM_BUS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define BUS_MAX_DEVICES 16

/* One access of len 1, 2 or 4 bytes at port base+off; *val is read or written (low bytes). */
typedef void (*bus_handler)(void *dev, uint16_t off, bool write, unsigned int len, uint32_t *val);

struct bus_device {
	uint16_t base, count;
	bus_handler io;
	void *dev;
	const char *name;
	atomic_uint_fast64_t exits, accesses; /* so far */
};

struct bus {
	struct bus_device device[BUS_MAX_DEVICES];
	unsigned int n;
};

/* 0, -ENOSPC, or -EBUSY when the range overlaps another device. */
int bus_add(struct bus *b, uint16_t base, uint16_t count, const char *name, bus_handler io,
	    void *dev);

/* Index of the device that owns the port, or -1. */
int bus_find(const struct bus *b, uint16_t port);

/*
 * Carry out one KVM_EXIT_IO: `count` accesses of `len` bytes at data. A port that
 * nobody owns reads as all ones and ignores writes, as an empty ISA bus does.
 * Returns false when no device owns the port.
 */
bool bus_io(struct bus *b, uint16_t port, bool write, unsigned int len, uint32_t count,
	    uint8_t *data);

#endif

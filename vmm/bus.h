/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bus: which device answers a port or an address in memory.
 *
 * Registration happens before the vCPUs start; afterwards the table is
 * fixed but for counts and BARs, and every vCPU thread may call bus_io(). Devices lock themselves.
 */
#ifndef KVMPROF_VMM_BUS_H
#define KVMPROF_VMM_BUS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define BUS_MAX_DEVICES 16
#define BUS_MAX_MMIO 24

/* One access of len 1, 2 or 4 bytes at port base+off; *val is read or written (low bytes). */
typedef void (*bus_handler)(void *dev, uint16_t off, bool write, unsigned int len, uint32_t *val);

enum bus_access { BUS_READ, BUS_WRITE };

struct bus_device {
	uint16_t base, count;
	bus_handler io;
	void *dev;
	const char *name;
	atomic_uint_fast64_t exits, accesses; /* so far */
};

/* One access of len 1 to 8 bytes at gpa base+off; *val is read or written (low bytes). */
typedef void (*mmio_handler)(void *dev, uint64_t off, bool write, unsigned int len, uint64_t *val);

struct mmio_device {
	atomic_uint_fast64_t base; /* guest-physical; outside of RAM it answers */
	uint64_t size;		   /* bytes */
	mmio_handler io;
	void *dev;
	const char *name;
	atomic_uint_fast64_t exits; /* so far */
};

struct bus {
	struct bus_device device[BUS_MAX_DEVICES];
	unsigned int n;
	struct mmio_device mmio[BUS_MAX_MMIO];
	unsigned int nmmio;
};

/* 0, -ENOSPC, or -EBUSY when the range overlaps another device. */
int bus_add(struct bus *b, uint16_t base, uint16_t count, const char *name, bus_handler io,
	    void *dev);

/* The same for [base, base+size) of guest-physical addresses. */
int bus_add_mmio(struct bus *b, uint64_t base, uint64_t size, const char *name, mmio_handler io,
		 void *dev);

/*
 * Move the memory-mapped range of that index, as a PCI BAR does, while vCPUs run; where it
 * comes to lie over others the one that was added first answers. BUS_NOWHERE: no address.
 */
#define BUS_NOWHERE UINT64_MAX
void bus_move_mmio(struct bus *b, unsigned int index, uint64_t base);

/* Index of the device that owns the address, or -1. */
int bus_find_mmio(const struct bus *b, uint64_t gpa);

/* Index of the device that owns the port, or -1. */
int bus_find(const struct bus *b, uint16_t port);

/*
 * Carry out one KVM_EXIT_IO: `count` accesses of `len` bytes at data. A port that
 * nobody owns reads as all ones and ignores writes, as an empty ISA bus does.
 * Returns false when no device owns the port.
 */
bool bus_io(struct bus *b, uint16_t port, enum bus_access access, unsigned int len, uint32_t count,
	    uint8_t *data);

/*
 * Carry out one KVM_EXIT_MMIO of `len` bytes (1 to 8) at data. An address that nobody
 * owns, or an access beyond a device's end, reads as all ones and is not written:
 * false then.
 */
bool bus_mmio(struct bus *b, uint64_t gpa, enum bus_access access, unsigned int len, uint8_t *data);

#endif

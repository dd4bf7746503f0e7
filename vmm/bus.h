/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bus: dispatches accesses to I/O ports and to memory-mapped registers to the devices.
 *
 * Devices are added by the thread that creates the machine, before the vCPUs start. Afterwards the
 * table is fixed except for counters and the addresses of BARs, and any vCPU thread may call
 * bus_io() and bus_mmio(). Devices do their own locking. `name` and `dev` are borrowed.
 */
#ifndef KVMPROF_VMM_BUS_H
#define KVMPROF_VMM_BUS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define BUS_MAX_DEVICES 16
#define BUS_MAX_MMIO 24

/*
 * Handles one access of len 1, 2 or 4 bytes at port base + off. Reads or writes the low bytes of
 * *val. Called by any vCPU thread.
 */
typedef void (*bus_handler)(void *dev, uint16_t off, bool write, unsigned int len, uint32_t *val);

enum bus_access { BUS_READ, BUS_WRITE };

struct bus_device {
	/* First port and number of ports. */
	uint16_t base, count;
	bus_handler io;
	void *dev;
	const char *name;
	atomic_uint_fast64_t exits, accesses; /* number of exits and of accesses so far */
};

/*
 * Handles one access of len 1 to 8 bytes at address base + off. Reads or writes the low bytes of
 * *val. Called by any vCPU thread.
 */
typedef void (*mmio_handler)(void *dev, uint64_t off, bool write, unsigned int len, uint64_t *val);

struct mmio_device {
	atomic_uint_fast64_t base; /* guest-physical; where RAM is, the device is not reached */
	uint64_t size;		   /* bytes */
	mmio_handler io;
	void *dev;
	const char *name;
	atomic_uint_fast64_t exits; /* number of exits so far */
};

struct bus {
	struct bus_device device[BUS_MAX_DEVICES];
	unsigned int n;
	struct mmio_device mmio[BUS_MAX_MMIO];
	unsigned int nmmio;
};

/*
 * Adds a device with `count` ports from `base` on. Returns 0, -ENOSPC, or -EBUSY if the range
 * overlaps another device.
 */
int bus_add(struct bus *b, uint16_t base, uint16_t count, const char *name, bus_handler io,
	    void *dev);

/* Adds a device at the guest-physical addresses [base, base + size). Returns as bus_add(). */
int bus_add_mmio(struct bus *b, uint64_t base, uint64_t size, const char *name, mmio_handler io,
		 void *dev);

/*
 * Moves the memory-mapped range with this index, as a PCI BAR does, while vCPUs may run. If it then
 * overlaps another range, the one that was added first gets the accesses. BUS_NOWHERE removes it
 * from the address space.
 */
#define BUS_NOWHERE UINT64_MAX
void bus_move_mmio(struct bus *b, unsigned int index, uint64_t base);

/* Returns the index of the device that owns the address, or -1. Any thread may call it. */
int bus_find_mmio(const struct bus *b, uint64_t gpa);

/* Returns the index of the device that owns the port, or -1. Any thread may call it. */
int bus_find(const struct bus *b, uint16_t port);

/*
 * Executes one KVM_EXIT_IO: `count` accesses of `len` bytes each at data. A port without a device
 * reads as all ones and ignores writes, as on an empty ISA bus. Returns false if no device owns the
 * port.
 */
bool bus_io(struct bus *b, uint16_t port, enum bus_access access, unsigned int len, uint32_t count,
	    uint8_t *data);

/*
 * Executes one KVM_EXIT_MMIO of `len` bytes (1 to 8) at data. An address without a device, or an
 * access beyond a device's end, reads as all ones and ignores writes; then it returns false.
 */
bool bus_mmio(struct bus *b, uint64_t gpa, enum bus_access access, unsigned int len, uint8_t *data);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dev_fixture: an I/O bus, port accesses as a guest makes them, and a record of the devices'
 * actions.
 */
#ifndef KVMPROF_TESTS_UNIT_DEV_FIXTURE_H
#define KVMPROF_TESTS_UNIT_DEV_FIXTURE_H

#include "vmm/bus.h"
#include "vmm/dev/dev.h"

#include <stdatomic.h>
#include <string.h>

static struct bus bus;

static inline void out_n(uint16_t port, uint32_t val, unsigned int len)
{
	assert_true(bus_io(&bus, port, BUS_WRITE, len, 1, (uint8_t *)&val));
}

static inline uint32_t in_n(uint16_t port, unsigned int len)
{
	uint32_t val = 0;

	assert_true(bus_io(&bus, port, BUS_READ, len, 1, (uint8_t *)&val));
	return val;
}

static inline void outb(uint16_t port, uint8_t val)
{
	out_n(port, val, 1);
}

static inline uint8_t inb(uint16_t port)
{
	return (uint8_t)in_n(port, 1);
}

/* The requests that the devices have made to the machine. */
static struct {
	atomic_uint rises, falls;
	atomic_int level, irq;
	unsigned int ends;
	enum dev_end how;
	uint8_t out[64];
	unsigned int out_n;
} seen;

static inline void irq_set(void *ctx, unsigned int irq, int level)
{
	assert_ptr_equal(ctx, &seen);
	seen.irq = (int)irq;
	if (level)
		seen.rises++;
	else
		seen.falls++;
	seen.level = level;
}

static const struct dev_irq irq_line = { irq_set, &seen };

static inline int clean(void **state)
{
	(void)state;
	memset(&bus, 0, sizeof(bus));
	memset(&seen, 0, sizeof(seen));
	return 0;
}

#endif

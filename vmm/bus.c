/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/bus.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

int bus_add(struct bus *b, uint16_t base, uint16_t count, const char *name, bus_handler io,
	    void *dev)
{
	for (unsigned int i = 0; i < b->n; i++) {
		const struct bus_device *d = &b->device[i];

		if (base < d->base + d->count && d->base < base + count)
			return -EBUSY;
	}
	if (b->n == BUS_MAX_DEVICES)
		return -ENOSPC;
	b->device[b->n++] = (struct bus_device){
		.base = base, .count = count, .io = io, .dev = dev, .name = name
	};
	return 0;
}

int bus_add_mmio(struct bus *b, uint64_t base, uint64_t size, const char *name, mmio_handler io,
		 void *dev)
{
	for (unsigned int i = 0; i < b->nmmio; i++) {
		uint64_t other = b->mmio[i].base;

		if (other != BUS_NOWHERE && base < other + b->mmio[i].size && other < base + size)
			return -EBUSY;
	}
	if (b->nmmio == BUS_MAX_MMIO)
		return -ENOSPC;
	b->mmio[b->nmmio++] = (struct mmio_device){
		.base = base, .size = size, .io = io, .dev = dev, .name = name
	};
	return 0;
}

/* Finds the device at gpa. The base is read once, because it may change meanwhile. */
static int find_mmio(const struct bus *b, uint64_t gpa, uint64_t *off)
{
	for (unsigned int i = 0; i < b->nmmio; i++) {
		uint64_t base = atomic_load_explicit(&((struct bus *)b)->mmio[i].base,
						     memory_order_relaxed);

		if (base != BUS_NOWHERE && gpa >= base && gpa - base < b->mmio[i].size) {
			*off = gpa - base;
			return (int)i;
		}
	}
	return -1;
}

int bus_find_mmio(const struct bus *b, uint64_t gpa)
{
	uint64_t off;

	return find_mmio(b, gpa, &off);
}

void bus_move_mmio(struct bus *b, unsigned int index, uint64_t base)
{
	atomic_store(&b->mmio[index].base, base);
}

int bus_find(const struct bus *b, uint16_t port)
{
	for (unsigned int i = 0; i < b->n; i++)
		if (port >= b->device[i].base && port - b->device[i].base < b->device[i].count)
			return (int)i;
	return -1;
}

bool bus_io(struct bus *b, uint16_t port, enum bus_access access, unsigned int len, uint32_t count,
	    uint8_t *data)
{
	const bool write = access == BUS_WRITE;
	int at = bus_find(b, port);
	struct bus_device *d = at < 0 ? NULL : &b->device[at];

	if (d) {
		atomic_fetch_add_explicit(&d->exits, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&d->accesses, count, memory_order_relaxed);
	}
	for (uint32_t i = 0; i < count; i++, data += len) {
		uint32_t val = UINT32_MAX;

		if (write) {
			val = 0;
			memcpy(&val, data, len);
		}
		if (d)
			d->io(d->dev, (uint16_t)(port - d->base), write, len, &val);
		if (!write)
			memcpy(data, &val, len);
	}
	return d != NULL;
}

bool bus_mmio(struct bus *b, uint64_t gpa, enum bus_access access, unsigned int len, uint8_t *data)
{
	const bool write = access == BUS_WRITE;
	uint64_t val = UINT64_MAX, off = 0;
	int at = find_mmio(b, gpa, &off);
	struct mmio_device *d = at < 0 ? NULL : &b->mmio[at];

	if (d && len > d->size - off)
		d = NULL;
	if (d) {
		atomic_fetch_add_explicit(&d->exits, 1, memory_order_relaxed);
		if (write) {
			val = 0;
			memcpy(&val, data, len);
		}
		d->io(d->dev, off, write, len, &val);
	}
	if (!write)
		memcpy(data, &val, len);
	return d != NULL;
}

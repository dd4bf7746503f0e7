/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio_fixture: guest RAM in an array and the driver's side of split virtqueues in it, for
 * tests of device models. One queue's rings take FIX_QUEUE bytes from FIX_RINGS on; what a
 * test puts into buffers begins at FIX_DATA.
 */
#ifndef KVMPROF_TESTS_UNIT_VIRTIO_FIXTURE_H
#define KVMPROF_TESTS_UNIT_VIRTIO_FIXTURE_H

#include "vmm/dev/virtio.h"

#include <string.h>

#define FIX_RAM (1u << 20)
#define FIX_SIZE 16u /* descriptors of a queue */
#define FIX_RINGS 0x1000u
#define FIX_QUEUE 0x1000u
#define FIX_AVAIL 0x400u /* in a queue's part */
#define FIX_USED 0x800u
#define FIX_DATA 0x40000u

static uint8_t fix_ram[FIX_RAM] __attribute__((aligned(4096)));
static struct gmem fix_mem = {
	.region = { { .gpa = 0, .size = FIX_RAM, .host = fix_ram } },
	.n = 1,
};
static uint16_t fix_avail[VIRTIO_MAX_QUEUES], fix_used[VIRTIO_MAX_QUEUES];
static unsigned int fix_queue_interrupts, fix_config_interrupts;

struct fix_desc {
	uint64_t addr;
	uint32_t len;
	uint16_t flags, next;
};
enum { FIX_NEXT = 1, FIX_WRITE = 2, FIX_INDIRECT = 4 };

static inline void fix_put16(uint64_t gpa, uint16_t v)
{
	memcpy(fix_ram + gpa, &v, sizeof(v));
}

static inline uint16_t fix_get16(uint64_t gpa)
{
	uint16_t v;

	memcpy(&v, fix_ram + gpa, sizeof(v));
	return v;
}

static inline uint64_t fix_rings(unsigned int q)
{
	return FIX_RINGS + (uint64_t)q * FIX_QUEUE;
}

static inline void fix_interrupt(void *transport, unsigned int q)
{
	(void)transport;
	if (q == UINT32_MAX)
		fix_config_interrupts++;
	else
		fix_queue_interrupts++;
}

/* The driver's way through 3.1.1, without a transport. */
static inline void fix_start(struct virtio *d, uint64_t features)
{
	/* First: a device that still looks at its rings would take their loss for a bad driver. */
	d->interrupt = fix_interrupt;
	virtio_set_status(d, 0);
	memset(fix_ram, 0, sizeof(fix_ram));
	memset(fix_avail, 0, sizeof(fix_avail));
	memset(fix_used, 0, sizeof(fix_used));
	fix_queue_interrupts = fix_config_interrupts = 0;
	virtio_set_status(d, 3);
	virtio_features_write(d, 0, (uint32_t)features);
	virtio_features_write(d, 1, (uint32_t)((features | VIRTIO_F_VERSION_1) >> 32));
	virtio_set_status(d, 3 | VIRTIO_FEATURES_OK);
	for (unsigned int i = 0; i < d->nqueues; i++) {
		struct virtio_queue *q = virtio_queue_setup(d, i);

		q->size = FIX_SIZE;
		q->desc = fix_rings(i);
		q->avail = fix_rings(i) + FIX_AVAIL;
		q->used = fix_rings(i) + FIX_USED;
		virtio_queue_enable(d, i);
	}
	virtio_set_status(d, 3 | VIRTIO_FEATURES_OK | VIRTIO_DRIVER_OK);
}

static inline void fix_desc(uint64_t table, unsigned int i, uint64_t addr, uint32_t len,
			    uint16_t flags, uint16_t next)
{
	struct fix_desc desc = { addr, len, flags, next };

	memcpy(fix_ram + table + i * sizeof(desc), &desc, sizeof(desc));
}

/* Descriptor i of queue q. */
static inline void fix_put(unsigned int q, unsigned int i, uint64_t addr, uint32_t len,
			   uint16_t flags, uint16_t next)
{
	fix_desc(fix_rings(q), i, addr, len, flags, next);
}

/* Make the chain available that begins at head. */
static inline void fix_offer(unsigned int q, uint16_t head)
{
	uint64_t ring = fix_rings(q) + FIX_AVAIL;

	fix_put16(ring + 4 + 2 * (fix_avail[q] % FIX_SIZE), head);
	fix_put16(ring + 2, ++fix_avail[q]);
}

/* The next chain that came back; false: none. */
static inline bool fix_take(unsigned int q, uint32_t *head, uint32_t *len)
{
	uint64_t ring = fix_rings(q) + FIX_USED;
	uint32_t entry[2];

	if (fix_get16(ring + 2) == fix_used[q])
		return false;
	memcpy(entry, fix_ram + ring + 4 + 8 * (fix_used[q]++ % FIX_SIZE), sizeof(entry));
	*head = entry[0];
	*len = entry[1];
	return true;
}

#endif

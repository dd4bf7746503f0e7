/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The disk guest reads its first virtio disk as fast as possible, from ring 3. See main.c.
 *
 * Ring 0 finds the device and sets it up. From then on ring 3 has the queue, the buffers and the
 * notification register mapped, and does everything else: on hosts that interpret ring 0, the disk
 * is measured and not the interpreter.
 */
#ifndef BLK_H
#define BLK_H

#include "../demo/demo.h"

/*
 * Physical addresses, mapped one to one for both rings. The box and the queue come first, then a
 * buffer for each request in flight. This needs 64 MiB of memory.
 */
#define BLK_RAM 0x2000000ul
#define BLK_RAM_END 0x4000000ul
#define BLK_BOX BLK_RAM
#define BLK_DESC 0x2010000ul
#define BLK_AVAIL 0x2011000ul
#define BLK_USED 0x2012000ul
#define BLK_HEADERS 0x2014000ul
#define BLK_STATUS 0x2016000ul
#define BLK_DATA 0x2200000ul
/* Registers of devices and of the local APIC, also mapped one to one. */
#define BLK_MMIO 0xc0000000ul
#define BLK_MMIO_END 0x100000000ul

#define BLK_QUEUE 256u /* descriptors */
#define BLK_MAX_DEPTH 64u
#define BLK_MAX_BYTES 0x20000u
#define BLK_SECTOR 512u

#define BLK_VECTOR 0x30u /* vector of the queue's interrupt */

/* Data passed from ring 0 to ring 3 and back. */
struct blk_box {
	/* Members that describe the device. */
	u64 notify;    /* address of the notification register */
	u32 event_idx; /* EVENT_IDX was agreed on */
	u32 irq;       /* interrupts are requested */
	u64 sectors;
	/* Members that describe a workload. */
	u64 budget; /* TSC cycles; 0: each block once */
	u64 limit;  /* cycles without an answer after which the device is given up */
	u32 bytes, depth, random, sum_all;
	/* Results of the workload. */
	u64 requests, cycles, kicks, waits;
	u64 bad;   /* requests that failed, or whose sectors had wrong contents */
	u64 stuck; /* the device was given up */
	u64 sum;   /* sum of all words, if sum_all */
	/* State of the driver. */
	u64 random_state, next; /* position of the next read */
	u64 at[BLK_MAX_DEPTH];	/* sector of each request in flight */
	u16 next_avail, next_used;
};

/*
 * Sets up the first disk on this transport ("pci" or "mmio" from the command line, else
 * the first one that has a disk) and fills *box. Returns the transport's name, a static string, or
 * NULL if there is no disk.
 */
const char *device_setup(struct blk_box *box, const char *line);
/* Number of interrupts, counted by irq.S. */
extern volatile u64 irq_count;

#endif

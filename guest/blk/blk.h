/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The disk guest: reads its first virtio disk as fast as it is let to, from ring 3. See main.c.
 *
 * Ring 0 finds the device and sets it up. From then on ring 3 has its queue, its buffers
 * and its notification register mapped, and does all else: on hosts that interpret ring 0
 * it is the disk that is measured, not the interpreter.
 */
#ifndef BLK_H
#define BLK_H

#include "../demo/demo.h"

/*
 * Physical addresses, mapped to themselves for both rings. The box and the queue come
 * first, then a buffer for each request in flight. Needs 64 MiB of memory.
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
/* Registers of devices and of the local APIC, likewise. */
#define BLK_MMIO 0xc0000000ul
#define BLK_MMIO_END 0x100000000ul

#define BLK_QUEUE 256u /* descriptors */
#define BLK_MAX_DEPTH 64u
#define BLK_MAX_BYTES 0x20000u
#define BLK_SECTOR 512u

#define BLK_VECTOR 0x30u /* of the queue's interrupt */

/* What ring 0 tells ring 3, and gets back. */
struct blk_box {
	/* The device. */
	u64 notify;    /* address of the register */
	u32 event_idx; /* agreed on */
	u32 irq;       /* interrupts are wanted */
	u64 sectors;
	/* A workload. */
	u64 budget; /* TSC cycles; 0: each block once */
	u64 limit;  /* cycles without an answer after which the device is given up */
	u32 bytes, depth, random, sum_all;
	/* What came of it. */
	u64 requests, cycles, kicks, waits;
	u64 bad;   /* requests that failed, or whose sectors were not those asked for */
	u64 stuck; /* the device was given up */
	u64 sum;   /* of all words, with sum_all */
	/* The driver's. */
	u64 random_state, next; /* where the next request reads */
	u64 at[BLK_MAX_DEPTH];	/* sector of each in flight */
	u16 next_avail, next_used;
};

/* device.c: transport "pci", "mmio", or NULL for the first that has a disk; 0 when there is none. */
const char *device_setup(struct blk_box *box, const char *line);
extern volatile u64 irq_count;

#endif

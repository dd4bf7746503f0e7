/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tests: 700 runs */
/*
 * A hostile driver of a virtio disk. The input is a series of steps of 16 bytes:
 *
 *	u8 what  u8 queue  u16 a  u32 b  u64 c
 *
 * which put descriptors, headers, indices and configuration as they please, notify, reset
 * and begin anew. Sanitizers see to accesses outside of RAM; beyond that, what is in RAM
 * behind the disk's own addresses stays as it was, and a device that failed works after a reset.
 */
#include "tests/fuzz/fuzz.h"

#include "tests/unit/blk_fixture.h"

#include "base/cursor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define STEPS 200u
#define SECTORS 256u

static struct disk *disk;

/* One image for all inputs; its overlay lives as long as one of them. */
static int image(void)
{
	static int fd = -1;
	static uint8_t bytes[SECTORS * 512];

	if (fd < 0) {
		fd = memfd_create("fuzz-disk", 0);
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)i;
		if (fd < 0 || write(fd, bytes, sizeof(bytes)) != (ssize_t)sizeof(bytes))
			abort();
	}
	return fd;
}

static void open_disk(void)
{
	char path[64];
	struct disk_config cfg = { .path = path };
	struct err e = { 0 };

	snprintf(path, sizeof(path), "/proc/self/fd/%d", image());
	if (disk_open(&disk, &cfg, &e) < 0)
		abort();
}

static void step(struct blk_driver *b, struct cursor *c)
{
	uint8_t what = cursor_u8(c), q = cursor_u8(c) % 2;
	uint16_t a = cursor_u16(c);
	uint32_t v = cursor_u32(c);
	uint64_t w = cursor_u64(c);
	struct blk_desc *t = blk_table(b, q) + a % BLK_SIZE;
	uint16_t *avail = blk_ptr(b, blk_avail_at(q), 4 + 2 * BLK_SIZE);
	uint8_t *h = blk_ptr(b, blk_header_at(q, a % 16), 32);

	switch (what % 10) {
	case 0:
		*t = (struct blk_desc){ w, v, (uint16_t)(a >> 8), (uint16_t)(a >> 10) };
		return;
	case 1: /* within the data, so that more chains are good ones */
		*t = (struct blk_desc){ BLK_DATA + w % 0x10000, v % 0x10000, (uint16_t)(a >> 8 & 7),
					(uint16_t)(a % BLK_SIZE + 1) };
		return;
	case 2:
		blk_put(b, q, a % 16, v % 16, w % (SECTORS + 4), (a >> 4) * 512u);
		return;
	case 3:
		memcpy(h, &v, 4);
		memcpy(h + 8, &w, 8);
		return;
	case 4:
		avail[2 + v % BLK_SIZE] = a;
		avail[1] = b->avail[q] = (uint16_t)w;
		return;
	case 5:
		virtio_notify(b->d, a % 20);
		return;
	case 6:
		memcpy((uint8_t *)blk_ptr(b, BLK_DATA, BLK_DATA_SPACE) + a, &w, 8);
		return;
	case 7:
		virtio_config_write(b->d, a % 80, 1u << v % 4, w);
		(void)virtio_config_read(b->d, v % 80, 1u << a % 4);
		return;
	case 8:
		if (a % 4 == 0)
			virtio_set_status(b->d, (uint8_t)v);
		else
			blk_put(b, q, a % 16, BLK_T_DISCARD, v, 16 * (a >> 4 & 31));
		return;
	default:
		b->d->ops->drain(b->d);
		return;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct virtio_blk_config cfg = { .queues = 2 };
	struct blk_driver b;
	struct cursor c;
	uint8_t status;

	open_disk();
	cfg.disk = disk;
	if (blk_driver_init(&b, &cfg) < 0)
		abort();
	blk_begin(&b, BLK_F_FLUSH | BLK_F_CONFIG_WCE | VIRTIO_F_INDIRECT_DESC);
	cursor_init(&c, data, size);
	for (unsigned int i = 0; i < STEPS && cursor_left(&c) >= 16; i++)
		step(&b, &c);
	/* Whatever it was, a reset makes a disk of it again. */
	blk_begin(&b, BLK_F_FLUSH);
	status = blk_do(&b, 1, BLK_T_IN, SECTORS - 1, 512);
	if (status != IO_OK || blk_do(&b, 0, BLK_T_FLUSH, 0, 0) != IO_OK)
		abort();
	blk_driver_deinit(&b);
	disk_close(disk, NULL);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * blk_fixture: a driver of a virtio disk, with guest RAM of its own.
 *
 * Each queue has its own place for its tables. Request k of a queue uses its own header, status and
 * data, so that many can be in flight.
 */
#ifndef KVMPROF_TESTS_BLK_FIXTURE_H
#define KVMPROF_TESTS_BLK_FIXTURE_H

#include "vmm/dev/virtio_blk.h"
#include "vmm/dev/virtio_blk_request.h"
#include "vmm/gmem_alloc.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLK_RAM (UINT64_C(32) << 20)
#define BLK_QUEUE_SPACE UINT64_C(0x10000)
#define BLK_SIZE 64u /* size of each queue */
#define BLK_DATA UINT64_C(0x200000)
#define BLK_DATA_SPACE UINT64_C(0x40000) /* for each request */
#define BLK_NEXT 1u
#define BLK_WRITE 2u
#define BLK_F_FLUSH (UINT64_C(1) << 9)
#define BLK_F_CONFIG_WCE (UINT64_C(1) << 11)

/* Fills a disk's initial contents: bytes that identify their sectors. */
static inline void blk_model(uint8_t *model, size_t len)
{
	for (size_t i = 0; i < len; i++)
		model[i] = (uint8_t)(i / 512 * 7 + i);
}

/*
 * Makes the model, and a new file with its contents, whose name is stored in path[64]. Returns a
 * descriptor, or -1.
 */
static inline int blk_image(char *path, uint8_t *model, size_t len)
{
	int fd;

	blk_model(model, len);
	snprintf(path, 64, "/tmp/kvmprof-blk-XXXXXX");
	fd = mkstemp(path);
	return fd < 0 || write(fd, model, len) != (ssize_t)len || close(fd) ? -1 : 0;
}

struct blk_driver {
	struct gmem mem;
	struct virtio *d;
	uint16_t avail[VIRTIO_BLK_MAX_QUEUES]; /* number of entries made available */
	atomic_uint interrupts;
};

struct blk_desc {
	uint64_t addr;
	uint32_t len;
	uint16_t flags, next;
};

static inline uint64_t blk_queue_at(unsigned int q)
{
	return BLK_QUEUE_SPACE * (q + 1);
}

static inline void *blk_ptr(struct blk_driver *b, uint64_t gpa, uint64_t len)
{
	return gmem_ptr(&b->mem, gpa, len);
}

static inline struct blk_desc *blk_table(struct blk_driver *b, unsigned int q)
{
	return blk_ptr(b, blk_queue_at(q), BLK_SIZE * sizeof(struct blk_desc));
}

static inline uint64_t blk_avail_at(unsigned int q)
{
	return blk_queue_at(q) + 0x2000;
}

static inline uint64_t blk_used_at(unsigned int q)
{
	return blk_queue_at(q) + 0x4000;
}

static inline uint64_t blk_header_at(unsigned int q, unsigned int k)
{
	return blk_queue_at(q) + 0x6000 + 32 * k;
}

static inline uint64_t blk_data_at(unsigned int k)
{
	return BLK_DATA + BLK_DATA_SPACE * k;
}

static inline void blk_interrupt(void *ctx, unsigned int q)
{
	struct blk_driver *b = ctx;

	(void)q;
	atomic_fetch_add(&b->interrupts, 1);
}

static inline void blk_begin(struct blk_driver *b, uint64_t features)
{
	features |= VIRTIO_F_VERSION_1;
	virtio_set_status(b->d, 0);
	virtio_set_status(b->d, 3);
	virtio_features_write(b->d, 0, (uint32_t)features);
	virtio_features_write(b->d, 1, (uint32_t)(features >> 32));
	virtio_set_status(b->d, 11);
	for (unsigned int q = 0; q < b->d->nqueues; q++) {
		struct virtio_queue *vq = virtio_queue_setup(b->d, q);

		memset(blk_ptr(b, blk_queue_at(q), BLK_QUEUE_SPACE), 0, BLK_QUEUE_SPACE);
		vq->size = BLK_SIZE;
		vq->desc = blk_queue_at(q);
		vq->avail = blk_avail_at(q);
		vq->used = blk_used_at(q);
		virtio_queue_enable(b->d, q);
		b->avail[q] = 0;
	}
	virtio_set_status(b->d, 15);
}

static inline void blk_header(struct blk_driver *b, unsigned int q, unsigned int k, uint32_t type,
			      uint64_t sector)
{
	uint8_t *h = blk_ptr(b, blk_header_at(q, k), 32);

	memcpy(h, &type, 4);
	memset(h + 4, 0, 4);
	memcpy(h + 8, &sector, 8);
	h[16] = 0xff; /* the status */
}

/*
 * Puts request k into queue q: header, len bytes of data in two parts, status. It uses four
 * descriptors.
 */
static inline void blk_put(struct blk_driver *b, unsigned int q, unsigned int k, uint32_t type,
			   uint64_t sector, uint32_t len)
{
	struct blk_desc *t = blk_table(b, q) + 4 * k;
	bool in = type == BLK_T_IN || type == BLK_T_GET_ID;
	uint16_t first = (uint16_t)(4 * k), dir = in ? BLK_WRITE : 0;
	uint32_t part = len / 3;
	uint16_t *avail = blk_ptr(b, blk_avail_at(q), 4 + 2 * BLK_SIZE);
	unsigned int n = 0;

	blk_header(b, q, k, type, sector);
	t[n++] = (struct blk_desc){ blk_header_at(q, k), 16, BLK_NEXT, first + 1 };
	if (part) {
		t[n] = (struct blk_desc){ blk_data_at(k), part, BLK_NEXT | dir,
					  (uint16_t)(first + n + 1) };
		n++;
	}
	if (len - part) {
		t[n] = (struct blk_desc){ blk_data_at(k) + part, len - part, BLK_NEXT | dir,
					  (uint16_t)(first + n + 1) };
		n++;
	}
	t[n] = (struct blk_desc){ blk_header_at(q, k) + 16, 1, BLK_WRITE, 0 };
	avail[2 + b->avail[q] % BLK_SIZE] = first;
	b->avail[q]++;
	__atomic_store_n(&avail[1], b->avail[q], __ATOMIC_RELEASE);
}

static inline uint16_t blk_used(struct blk_driver *b, unsigned int q)
{
	const uint16_t *used = blk_ptr(b, blk_used_at(q), 4);

	return __atomic_load_n(&used[1], __ATOMIC_ACQUIRE);
}

/* Waits until all requests were used. Returns false after some seconds. */
static inline bool blk_wait(struct blk_driver *b, unsigned int q)
{
	for (unsigned int i = 0; i < 100000; i++) {
		if (blk_used(b, q) == b->avail[q])
			return true;
		usleep(100);
	}
	return false;
}

static inline uint8_t blk_status(struct blk_driver *b, unsigned int q, unsigned int k)
{
	const uint8_t *h = blk_ptr(b, blk_header_at(q, k), 32);

	return h[16];
}

/* Executes one request. Returns its status, or 0xfe if it does not end. */
static inline uint8_t blk_do(struct blk_driver *b, unsigned int q, uint32_t type, uint64_t sector,
			     uint32_t len)
{
	blk_put(b, q, 0, type, sector, len);
	virtio_notify(b->d, q);
	return blk_wait(b, q) ? blk_status(b, q, 0) : 0xfe;
}

static inline int blk_driver_init(struct blk_driver *b, struct virtio_blk_config *cfg)
{
	struct err e = { 0 };

	memset(b, 0, sizeof(*b));
	if (!cfg->name)
		cfg->name = "vda";
	if (gmem_alloc(&b->mem, &(struct gmem_config){ .size = BLK_RAM }, &e) < 0 ||
	    virtio_blk_create(&b->d, &b->mem, cfg, &e) < 0)
		return -1;
	b->d->interrupt = blk_interrupt;
	b->d->transport = b;
	return b->d->ops->start(b->d, &e);
}

static inline void blk_driver_deinit(struct blk_driver *b)
{
	b->d->ops->destroy(b->d);
	gmem_alloc_free(&b->mem);
}

#endif

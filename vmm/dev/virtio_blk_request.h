/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio_blk_request: one request of the guest, from the chain to its status.
 *
 *	read by the device	u32 type, u32 reserved, u64 sector, data
 *	written by it		data, u8 status
 *
 * (VIRTIO 1.2, 5.2.6.) How these are cut into buffers is the driver's choice.
 */
#ifndef KVMPROF_VMM_DEV_VIRTIO_BLK_REQUEST_H
#define KVMPROF_VMM_DEV_VIRTIO_BLK_REQUEST_H

#include "vmm/dev/disk.h"
#include "vmm/dev/io.h"
#include "vmm/dev/virtio.h"
#include "vmm/dev/virtio_blk.h"

/* Segments of one discard; also what the config space says. */
#define BLK_MAX_SEGMENTS 16u
/* Sectors of each: 1 GiB. */
#define BLK_MAX_SEGMENT_SECTORS (1u << 21)

/* The type field. */
#define BLK_T_IN 0u
#define BLK_T_OUT 1u
#define BLK_T_FLUSH 4u
#define BLK_T_GET_ID 8u
#define BLK_T_DISCARD 11u
#define BLK_T_WRITE_ZEROES 13u

struct blk_request {
	struct blk_request *next; /* in a list of those that wait */
	bool waits;		  /* it is known that it would have to */
	uint32_t type;
	uint64_t sector;
	uint64_t bytes; /* of data */
	uint16_t queue, head;
	uint32_t written;  /* for virtio_push() */
	uint8_t *status;   /* in guest RAM */
	struct iovec *iov; /* data in guest RAM */
	unsigned int n;
	uint64_t token, submit_ns; /* see struct io_record */
	uint64_t notified_ns, begun_ns;
};

/*
 * From a chain, whose iov[] it changes and keeps pointers into. -EINVAL: there is no
 * header or no place for a status, so that the device can't answer.
 */
int virtio_blk_request_parse(struct blk_request *r, struct virtio_chain *c, uint16_t queue);

/* A copy that needs no chain; NULL without memory. free() it. */
struct blk_request *virtio_blk_request_copy(const struct blk_request *r);

/* The disk and what of it requests see. */
struct blk_target {
	struct disk *disk;
	char id[VIRTIO_BLK_ID_LEN];
	atomic_bool write_through; /* what is written is flushed before it is done */
};

enum blk_wait { BLK_MAY_WAIT, BLK_NO_WAIT };
/*
 * Carry it out; the status is the caller's to store. With BLK_NO_WAIT -EAGAIN (nothing was
 * written) when it would have to wait for the disk; otherwise an enum io_status. Fills in
 * r->bytes of a discard.
 */
int virtio_blk_request_run(struct blk_request *r, const struct blk_target *t, enum blk_wait wait);

/* enum io_type, or -1: it is none (GET_ID and types that there are not). */
int virtio_blk_request_io_type(const struct blk_request *r);

#endif

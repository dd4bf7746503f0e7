/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio_blk_request: one request of the guest, from its chain to its status.
 *
 * 	read by the device	u32 type, u32 reserved, u64 sector, data
 * 	written by it		data, u8 status
 *
 * (VIRTIO 1.2, 5.2.6.) The driver chooses how these are divided into buffers. Any thread may call
 * these functions; a request belongs to one thread at a time.
 */
#ifndef KVMPROF_VMM_DEV_VIRTIO_BLK_REQUEST_H
#define KVMPROF_VMM_DEV_VIRTIO_BLK_REQUEST_H

#include "vmm/dev/disk.h"
#include "vmm/dev/io.h"
#include "vmm/dev/virtio.h"
#include "vmm/dev/virtio_blk.h"

/* Maximum number of segments of one discard, which the config space states. */
#define BLK_MAX_SEGMENTS 16u
/* Maximum sectors of each segment: 1 GiB. */
#define BLK_MAX_SEGMENT_SECTORS (1u << 21)

/* Values of the type field. */
#define BLK_T_IN 0u
#define BLK_T_OUT 1u
#define BLK_T_FLUSH 4u
#define BLK_T_GET_ID 8u
#define BLK_T_DISCARD 11u
#define BLK_T_WRITE_ZEROES 13u

/* A parsed request. */
struct blk_request {
	struct blk_request *next; /* next one in a list of waiting requests */
	bool waits;		  /* executing it is known to need waiting */
	uint32_t type;
	uint64_t sector;
	uint64_t bytes; /* bytes of data */
	uint16_t queue, head;
	uint32_t written;  /* argument of virtio_push() */
	uint8_t *status;   /* in guest RAM */
	struct iovec *iov; /* data in guest RAM */
	unsigned int n;
	uint64_t token, submit_ns; /* see struct io_record */
	uint64_t notified_ns, begun_ns;
};

/*
 * Parses a chain, whose iov[] it changes and points into, so *c must outlive *r. Returns 0, or
 * -EINVAL if the header or the place for the status is missing, so that the device cannot answer.
 */
int virtio_blk_request_parse(struct blk_request *r, struct virtio_chain *c, uint16_t queue);

/*
 * Returns a copy that does not need the chain, or NULL if out of memory. The caller frees it with
 * free().
 */
struct blk_request *virtio_blk_request_copy(const struct blk_request *r);

/* The disk as seen by requests. */
struct blk_target {
	struct disk *disk;
	char id[VIRTIO_BLK_ID_LEN];
	atomic_bool write_through; /* a write is flushed before it is completed */
};

enum blk_wait { BLK_MAY_WAIT, BLK_NO_WAIT };
/*
 * Executes a request; the caller stores the status. Returns an enum io_status, or with BLK_NO_WAIT
 * also -EAGAIN (nothing was written) if it would have to wait for the disk. Sets r->bytes of a
 * discard.
 */
int virtio_blk_request_run(struct blk_request *r, const struct blk_target *t, enum blk_wait wait);

/* Returns the enum io_type, or -1 for GET_ID and unknown types. */
int virtio_blk_request_io_type(const struct blk_request *r);

#endif

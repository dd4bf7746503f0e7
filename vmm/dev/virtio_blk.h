/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio_blk: a disk of the guest (VIRTIO 1.2, 5.2).
 *
 * The thread of the vCPU that notified takes requests from the queue. It executes requests itself
 * that need not wait (data to read is in the host's page cache, data to write goes to memory),
 * because that takes less time than waking another thread. A few other threads execute the rest,
 * and also a part of large requests of one notification, so that several processors of the host
 * copy them. If requests follow each other closely, a polling thread takes them (virtio_poll),
 * unless io.done is set: the vCPU that issued a request is known only within its notification. If
 * the disk has a limit, the other threads execute all requests, each when the limit allows it.
 *
 * The thread that creates the machine calls these functions, unless stated otherwise.
 */
#ifndef KVMPROF_VMM_DEV_VIRTIO_BLK_H
#define KVMPROF_VMM_DEV_VIRTIO_BLK_H

#include "base/err.h"
#include "vmm/dev/disk.h"
#include "vmm/dev/io.h"
#include "vmm/dev/rate.h"
#include "vmm/dev/virtio.h"

#define VIRTIO_BLK_MAX_QUEUES 16u
#define VIRTIO_BLK_ID_LEN DISK_SERIAL_LEN

struct virtio_blk_config {
	struct disk *disk;   /* borrowed; outlives the device */
	const char *name;    /* "vda"; borrowed, outlives the device */
	const char *serial;  /* up to VIRTIO_BLK_ID_LEN bytes, copied; NULL: none */
	unsigned int index;  /* value of io_record.device */
	unsigned int queues; /* number of vCPUs; limited to 1 to VIRTIO_BLK_MAX_QUEUES queues */
	struct dev_io io;
	struct rate_limit limit; /* for its requests, and for the bytes that they read or write */
};

/* Creates the device. Returns 0 or -ENOMEM with *e recorded. ops->destroy() frees *out. */
int virtio_blk_create(struct virtio **out, const struct gmem *mem,
		      const struct virtio_blk_config *cfg, struct err *e);

/* Copies the counters. Any thread may call it. */
void virtio_blk_stats(const struct virtio *d, struct io_stats *out);

#endif

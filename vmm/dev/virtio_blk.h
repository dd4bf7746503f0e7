/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio_blk: a disk of the guest (VIRTIO 1.2, 5.2).
 *
 * Requests are taken from the queue on the vCPU's thread that notified. Those that need not
 * wait (what is read is in the host's page cache, what is written goes to memory) are
 * carried out there and then, which takes less than waking another thread; the rest is a
 * few threads' work. So is a part of what a notification brings of large requests, which
 * are copied by as many processors as the host has to spare. Requests that follow each other
 * closely are taken by a thread that looks for them (virtio_poll), unless io.done is set: who
 * brought a request is known within its notification only. Where the disk has a limit, all requests are the
 * threads' work, which wait until it is their time.
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
	struct disk *disk;   /* the caller's; outlives the device */
	const char *name;    /* "vda"; outlives the device */
	const char *serial;  /* up to VIRTIO_BLK_ID_LEN bytes, copied; NULL: none */
	unsigned int index;  /* io_record.device */
	unsigned int queues; /* one for each vCPU; 1 to VIRTIO_BLK_MAX_QUEUES are made of it */
	struct dev_io io;
	struct rate_limit limit; /* of its requests, and of the bytes that they read or write */
};

/* ops->destroy() frees it. */
int virtio_blk_create(struct virtio **out, const struct gmem *mem,
		      const struct virtio_blk_config *cfg, struct err *e);

/* So far; any thread. */
void virtio_blk_stats(const struct virtio *d, struct io_stats *out);

#endif

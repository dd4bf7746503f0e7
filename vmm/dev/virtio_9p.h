/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio_9p: a directory of the host as a 9P transport (device type 9; Linux,
 * include/uapi/linux/virtio_9p.h and net/9p/trans_virtio.c).
 *
 * One queue; a chain has a request to read and room for its answer. A process of its own answers
 * (p9_process.h), and a thread waits for it, so that the vCPU does not wait for the host's disks.
 */
#ifndef KVMPROF_VMM_DEV_VIRTIO_9P_H
#define KVMPROF_VMM_DEV_VIRTIO_9P_H

#include "vmm/dev/p9_process.h"
#include "vmm/dev/virtio.h"

#define VIRTIO_9P_TAG_MAX 31u

struct virtio_9p_config {
	const char *tag; /* what the guest mounts it by */
	struct p9_share share;
	struct p9_confine confine;
	/* The process has ended, as `how` says: requests fail from now on. Once, on any thread; may be NULL. */
	void (*ended)(void *ctx, const char *tag, const char *how);
	void *ended_ctx;
};

/* *out is owned, by ops->destroy(). The process is started here, the thread by ops->start(). */
int virtio_9p_new(struct virtio **out, const struct gmem *mem, const struct virtio_9p_config *cfg,
		  struct err *e);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio_9p: the virtio transport of 9P for a directory of the host (device type 9; Linux,
 * include/uapi/linux/virtio_9p.h and net/9p/trans_virtio.c).
 *
 * There is one queue; a chain has a request and room for its reply. A separate process answers
 * requests (p9_process.h). A thread waits for it, so that the vCPU does not wait for the host's
 * disks.
 *
 * The thread that creates the machine calls these functions, unless stated otherwise.
 */
#ifndef KVMPROF_VMM_DEV_VIRTIO_9P_H
#define KVMPROF_VMM_DEV_VIRTIO_9P_H

#include "vmm/dev/p9_process.h"
#include "vmm/dev/virtio.h"

#define VIRTIO_9P_TAG_MAX 31u

struct virtio_9p_config {
	const char *tag; /* name by which the guest mounts it, 1 to VIRTIO_9P_TAG_MAX bytes */
	struct p9_share share;
	struct p9_confine confine;
	/*
	 * Called once, on any thread, when the process has ended; `how` follows "it ". Requests
	 * fail from then on. May be NULL.
	 */
	void (*ended)(void *ctx, const char *tag, const char *how);
	void *ended_ctx;
};

/*
 * Creates the device and starts the process; ops->start() starts the thread. Returns 0, or -errno
 * with *e recorded. ops->destroy() frees *out.
 */
int virtio_9p_new(struct virtio **out, const struct gmem *mem, const struct virtio_9p_config *cfg,
		  struct err *e);

#endif

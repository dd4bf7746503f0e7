/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio_9p: a directory of the host as a 9P transport (device type 9; Linux,
 * include/uapi/linux/virtio_9p.h and net/9p/trans_virtio.c).
 *
 * One queue; a chain has a request to read and room for its answer. A thread of its own
 * answers, so that the vCPU does not wait for the host's disks.
 */
#ifndef KVMPROF_VMM_DEV_VIRTIO_9P_H
#define KVMPROF_VMM_DEV_VIRTIO_9P_H

#include "vmm/dev/p9.h"
#include "vmm/dev/virtio.h"

#define VIRTIO_9P_TAG_MAX 31u

/* *out is owned, by ops->destroy(). tag: what the guest mounts it by. */
int virtio_9p_new(struct virtio **out, const struct gmem *mem, const char *tag,
		  const struct p9_share *share, struct err *e);

#endif

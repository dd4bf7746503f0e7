/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio_net: an Ethernet card with one pair of queues and no offloads (VIRTIO 1.2, 5.1). The
 * thread that creates the machine calls these functions, unless stated otherwise.
 */
#ifndef KVMPROF_VMM_DEV_VIRTIO_NET_H
#define KVMPROF_VMM_DEV_VIRTIO_NET_H

#include "vmm/dev/io.h"
#include "vmm/dev/net_link.h"
#include "vmm/dev/virtio.h"

/*
 * Creates the device and its link; cfg->kind is not NET_NONE. Returns 0, or -errno of the link with
 * *e recorded. ops->destroy() frees *out.
 */
int virtio_net_new(struct virtio **out, const struct gmem *mem, const struct net_config *cfg,
		   struct err *e);

/*
 * Makes the device report packets as IO_SENT and IO_RECEIVED. Called before its start(). io->ctx is
 * borrowed and outlives the device.
 */
void virtio_net_watch(struct virtio *d, const struct dev_io *io);
/* Copies the counters. Any thread may call it. */
void virtio_net_stats(const struct virtio *d, struct net_stats *out);
/*
 * Ends receiving: afterwards no frame gets into the guest, and those that did were reported. Any
 * thread may call it.
 */
void virtio_net_end(struct virtio *d);

#endif

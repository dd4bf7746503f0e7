/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio_net: an Ethernet card with one pair of queues and no offloads (VIRTIO 1.2, 5.1).
 */
#ifndef KVMPROF_VMM_DEV_VIRTIO_NET_H
#define KVMPROF_VMM_DEV_VIRTIO_NET_H

#include "vmm/dev/io.h"
#include "vmm/dev/net_link.h"
#include "vmm/dev/virtio.h"

/* cfg.kind is not NET_NONE. *out is owned, by ops->destroy(). Errors are the link's. */
int virtio_net_new(struct virtio **out, const struct gmem *mem, const struct net_config *cfg,
		   struct err *e);

/* Before its start(): packets are told, as IO_SENT and IO_RECEIVED. What io->ctx is outlives it. */
void virtio_net_watch(struct virtio *d, const struct dev_io *io);
/* Any thread. */
void virtio_net_stats(const struct virtio *d, struct net_stats *out);
/* From here on no frame gets into the guest, and those that have got there were told. Any thread. */
void virtio_net_end(struct virtio *d);

#endif

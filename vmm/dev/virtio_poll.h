/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio_poll: a thread that looks into queues by itself while requests come one after the
 * other, so that the guest need not notify: each notification is a VM exit.
 *
 * It begins when notifications of a queue follow each other closely, tells the driver that it
 * wants none (VIRTIO 1.2, 2.7.7 and 2.7.10), and ends when nothing came for a while or when
 * it was itself kept from running: then no processor is idle, and the guest would have waited
 * for a thread. From times that did not pay it stays away, twice as long each time.
 */
#ifndef KVMPROF_VMM_DEV_VIRTIO_POLL_H
#define KVMPROF_VMM_DEV_VIRTIO_POLL_H

#include "base/err.h"
#include "vmm/dev/virtio.h"

struct virtio_poll;

struct virtio_poll_config {
	struct virtio *d; /* initialised; outlives the thread */
	/* Take what is in queue q; how many chains there were. On the polling thread. */
	unsigned int (*serve)(struct virtio *d, unsigned int q);
	unsigned int vcpus; /* that run beside it: with no more processors there is no polling */
};

/* Starts its thread at once. -ENOMEM or what pthread_create() says. */
int virtio_poll_create(struct virtio_poll **out, const struct virtio_poll_config *cfg,
		       struct err *e);
/* Stops, and joins the thread; NULL is fine. Before the device is destroyed. */
void virtio_poll_destroy(struct virtio_poll *p);

/* From kick(), once queue q is empty. Any thread. */
void virtio_poll_kicked(struct virtio_poll *p, unsigned int q);

/*
 * Waits until it does not look any more and notifications are on; only kicked() makes it
 * begin again. For reset() and drain(). Not on the polling thread.
 */
void virtio_poll_stop(struct virtio_poll *p);

#endif

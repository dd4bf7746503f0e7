/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio_poll: a thread that polls queues while requests follow each other closely, so that the
 * guest need not notify: each notification is a VM exit.
 *
 * Polling begins when notifications of a queue follow each other closely. The thread then tells the
 * driver that it needs none (VIRTIO 1.2, 2.7.7 and 2.7.10). It ends when no request came for a
 * while, or when the thread itself was kept from running: then no processor is idle, and the guest
 * would have waited for a thread. After polling that did not pay, it waits before it begins again,
 * twice as long each time.
 */
#ifndef KVMPROF_VMM_DEV_VIRTIO_POLL_H
#define KVMPROF_VMM_DEV_VIRTIO_POLL_H

#include "base/err.h"
#include "vmm/dev/virtio.h"

struct virtio_poll;

struct virtio_poll_config {
	struct virtio *d; /* borrowed, initialised; outlives the thread */
	/*
	 * Takes the requests of queue q. Returns the number of chains. Called on the polling
	 * thread.
	 */
	unsigned int (*serve)(struct virtio *d, unsigned int q);
	/*
	 * Number of vCPUs that run beside it; without more processors than that it does not poll.
	 */
	unsigned int vcpus;
};

/*
 * Starts the thread. Returns 0, or -errno with *e recorded. The caller frees *out with
 * virtio_poll_destroy().
 */
int virtio_poll_create(struct virtio_poll **out, const struct virtio_poll_config *cfg,
		       struct err *e);
/* Ends the thread and frees *p. Called before the device is destroyed. Accepts NULL. */
void virtio_poll_destroy(struct virtio_poll *p);

/*
 * Notes a notification of queue q, which is empty again, and may begin polling. Called from kick();
 * any thread.
 */
void virtio_poll_kicked(struct virtio_poll *p, unsigned int q);

/*
 * Waits until polling has ended and notifications are on; only virtio_poll_kicked() begins it
 * again. For reset() and drain(). Any thread except the polling one.
 */
void virtio_poll_stop(struct virtio_poll *p);

#endif

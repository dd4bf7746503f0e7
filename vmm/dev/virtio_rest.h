/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio_rest: a thread for what a notification leaves in a queue.
 *
 * A device without threads serves its queue on the vCPU's thread that notified it. Another vCPU could
 * add chains meanwhile for ever, and the first one would neither come back to the guest nor
 * see that the run is to end. So a notification serves a bounded number of chains, and this
 * thread goes on with the rest.
 */
#ifndef KVMPROF_VMM_DEV_VIRTIO_REST_H
#define KVMPROF_VMM_DEV_VIRTIO_REST_H

#include "base/err.h"
#include "vmm/dev/virtio.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Chains of one notification that are served on the vCPU's thread. */
#define VIRTIO_KICK_CHAINS (2u * VIRTIO_QUEUE_SIZE)

struct virtio_rest {
	struct virtio *d;
	/* Serves VIRTIO_KICK_CHAINS of queue q at most; were there as many? On any thread. */
	bool (*serve)(struct virtio *d, unsigned int q);
	pthread_t thread;
	pthread_mutex_t lock; /* what follows */
	pthread_cond_t changed;
	uint64_t wanted;  /* bits: queues */
	uint64_t from_ns; /* CLOCK_MONOTONIC: none is served before */
	bool started, working, ending;
};

/* d and serve outlive it. */
void virtio_rest_init(struct virtio_rest *r, struct virtio *d,
		      bool (*serve)(struct virtio *d, unsigned int q));
/* For a device's start(): what pthread_create() says. */
int virtio_rest_start(struct virtio_rest *r, struct err *e);
/* Ends and joins the thread, started or not. */
void virtio_rest_deinit(struct virtio_rest *r);

/*
 * For kick(): serve queue q, and leave to the thread what is more than a notification's share.
 * Any thread.
 */
void virtio_rest_kick(struct virtio_rest *r, unsigned int q);

/* What kick() has not served of queue q is left to the thread. Any thread. */
void virtio_rest_leave(struct virtio_rest *r, unsigned int q);

/* Defers the next call of serve() to this time of CLOCK_MONOTONIC. Called by serve() on the thread, which then returns true. */
void virtio_rest_pause(struct virtio_rest *r, uint64_t until_ns);

/* Waits until the thread serves none, and forgets what was left. For reset() and drain(). */
void virtio_rest_stop(struct virtio_rest *r);

#endif

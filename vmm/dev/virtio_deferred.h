/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio_deferred: a thread that handles what a notification leaves in a queue.
 *
 * A device without threads handles its queue on the thread of the vCPU that notified. Another vCPU
 * could keep adding chains, and the first one would neither return to the guest nor notice that the
 * run must end. A notification therefore handles a limited number of chains, and this thread
 * handles the rest.
 */
#ifndef KVMPROF_VMM_DEV_VIRTIO_DEFERRED_H
#define KVMPROF_VMM_DEV_VIRTIO_DEFERRED_H

#include "base/err.h"
#include "vmm/dev/virtio.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* The maximum number of chains of one notification that are handled on the vCPU's thread. */
#define VIRTIO_KICK_CHAINS (2u * VIRTIO_QUEUE_SIZE)

struct virtio_deferred {
	struct virtio *d;
	/*
	 * Handles at most VIRTIO_KICK_CHAINS chains of queue q. Returns whether there may be more.
	 * Any thread.
	 */
	bool (*serve)(struct virtio *d, unsigned int q);
	pthread_t thread;
	pthread_mutex_t lock; /* protects the members below */
	pthread_cond_t changed;
	uint64_t wanted;  /* bit mask of queues */
	uint64_t from_ns; /* CLOCK_MONOTONIC before which no queue is handled */
	bool started, working, ending;
};

/* Initialises *r. d is borrowed. virtio_deferred_deinit() releases it. */
void virtio_deferred_init(struct virtio_deferred *r, struct virtio *d,
			  bool (*serve)(struct virtio *d, unsigned int q));
/* Starts the thread; for a device's start(). Returns 0, or -errno with *e recorded. */
int virtio_deferred_start(struct virtio_deferred *r, struct err *e);
/* Ends the thread, if it was started, and releases *r. */
void virtio_deferred_deinit(struct virtio_deferred *r);

/*
 * Handles queue q on the calling thread, and leaves what exceeds a notification's share to the
 * thread. For kick(); any thread.
 */
void virtio_deferred_kick(struct virtio_deferred *r, unsigned int q);

/* Leaves the rest of queue q to the thread. Any thread. */
void virtio_deferred_add(struct virtio_deferred *r, unsigned int q);

/*
 * Defers the next call of serve() to this CLOCK_MONOTONIC time. Called by serve() on the thread,
 * which then returns true.
 */
void virtio_deferred_pause(struct virtio_deferred *r, uint64_t until_ns);

/* Waits until the thread handles no queue, and forgets what was left. For reset() and drain(). */
void virtio_deferred_stop(struct virtio_deferred *r);

#endif

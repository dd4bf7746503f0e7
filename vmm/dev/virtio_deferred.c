/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/dev/virtio_deferred.h"

#include "base/clock.h"
#include "base/thread.h"

#include <string.h>

void virtio_deferred_init(struct virtio_deferred *r, struct virtio *d,
			  bool (*serve)(struct virtio *d, unsigned int q))
{
	*r = (struct virtio_deferred){ .d = d, .serve = serve };
	pthread_mutex_init(&r->lock, NULL);
	thread_cond_init(&r->changed);
}

/* Handles one share of a queue's chains; the queue stays wanted if there may be more. */
static void rest_serve(struct virtio_deferred *r, unsigned int q)
{
	bool more;

	r->wanted &= ~(UINT64_C(1) << q);
	r->working = true;
	pthread_mutex_unlock(&r->lock);
	more = r->serve(r->d, q);
	pthread_mutex_lock(&r->lock);
	r->working = false;
	/* If virtio_deferred_stop() waits, the queue returns no more chains. */
	if (more)
		r->wanted |= UINT64_C(1) << q;
	pthread_cond_broadcast(&r->changed);
}

static void *rest_main(void *arg)
{
	struct virtio_deferred *r = arg;

	pthread_mutex_lock(&r->lock);
	while (!r->ending) {
		if (!r->wanted)
			pthread_cond_wait(&r->changed, &r->lock);
		else if (clock_mono_ns() < r->from_ns)
			thread_cond_wait_until(&r->changed, &r->lock, r->from_ns);
		else
			rest_serve(r, (unsigned int)__builtin_ctzll(r->wanted));
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

int virtio_deferred_start(struct virtio_deferred *r, struct err *e)
{
	int ret = thread_start(&r->thread, THREAD_REST, rest_main, r);

	r->started = ret == 0;
	return ret ? err_set(e, ret, "%s: cannot start a thread: %s", r->d->name, strerror(ret))
		   : 0;
}

void virtio_deferred_deinit(struct virtio_deferred *r)
{
	if (r->started) {
		pthread_mutex_lock(&r->lock);
		r->ending = true;
		pthread_cond_broadcast(&r->changed);
		pthread_mutex_unlock(&r->lock);
		pthread_join(r->thread, NULL);
	}
	pthread_mutex_destroy(&r->lock);
	pthread_cond_destroy(&r->changed);
}

void virtio_deferred_kick(struct virtio_deferred *r, unsigned int q)
{
	if (r->serve(r->d, q))
		virtio_deferred_add(r, q);
}

void virtio_deferred_add(struct virtio_deferred *r, unsigned int q)
{
	pthread_mutex_lock(&r->lock);
	r->wanted |= UINT64_C(1) << q;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

void virtio_deferred_pause(struct virtio_deferred *r, uint64_t until_ns)
{
	pthread_mutex_lock(&r->lock);
	r->from_ns = until_ns;
	pthread_mutex_unlock(&r->lock);
}

void virtio_deferred_stop(struct virtio_deferred *r)
{
	pthread_mutex_lock(&r->lock);
	while (r->working)
		pthread_cond_wait(&r->changed, &r->lock);
	r->wanted = 0;
	pthread_mutex_unlock(&r->lock);
}

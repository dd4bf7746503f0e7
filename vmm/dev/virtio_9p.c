/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/dev/virtio_9p.h"

#include "base/thread.h"
#include "vmm/dev/p9.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define F_MOUNT_TAG (UINT64_C(1) << 0) /* VIRTIO_9P_MOUNT_TAG */

struct virtio_9p {
	struct virtio d;
	struct p9 *p9; /* the thread's, or while it is not busy the resetting vCPU's */
	char name[VIRTIO_9P_TAG_MAX + 8];
	pthread_t thread;
	bool started;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool pending, busy, quit; /* under lock */
	struct virtio_chain chain;
	uint8_t request[P9_MSIZE], reply[P9_MSIZE];
};

static struct virtio_9p *of(struct virtio *d)
{
	return (struct virtio_9p *)d; /* its first member */
}

/* The driver has put a request into one chain with the room for its answer. */
static bool virtio_9p_answer(struct virtio_9p *v)
{
	struct virtio_chain *c = &v->chain;
	size_t len = c->out_len < sizeof(v->request) ? c->out_len : sizeof(v->request);
	size_t cap = c->in_len < sizeof(v->reply) ? c->in_len : sizeof(v->reply);

	if (virtio_chain_read(c, 0, v->request, len) != len)
		return false;
	len = p9_handle(v->p9, v->request, len, v->reply, cap);
	if (!len)
		return false;
	virtio_chain_write(c, 0, v->reply, len);
	virtio_push(&v->d, 0, c->head, (uint32_t)len);
	return true;
}

static void *worker(void *arg)
{
	struct virtio_9p *v = arg;

	pthread_mutex_lock(&v->lock);
	for (;;) {
		while (!v->pending && !v->quit)
			pthread_cond_wait(&v->changed, &v->lock);
		if (v->quit)
			break;
		v->pending = false;
		v->busy = true;
		pthread_mutex_unlock(&v->lock);
		while (virtio_pop(&v->d, 0, &v->chain))
			if (!virtio_9p_answer(v)) {
				virtio_fail(&v->d);
				break;
			}
		pthread_mutex_lock(&v->lock);
		v->busy = false;
		pthread_cond_broadcast(&v->changed);
	}
	pthread_mutex_unlock(&v->lock);
	return NULL;
}

static int virtio_9p_start(struct virtio *d, struct err *e)
{
	struct virtio_9p *v = of(d);
	int ret = thread_start(&v->thread, THREAD_9P, worker, v);

	v->started = ret == 0;
	return ret ? err_set(e, ret, "cannot start a thread: %s", strerror(ret)) : 0;
}

static void virtio_9p_kick(struct virtio *d, unsigned int q)
{
	struct virtio_9p *v = of(d);

	(void)q;
	pthread_mutex_lock(&v->lock);
	v->pending = true;
	pthread_cond_broadcast(&v->changed);
	pthread_mutex_unlock(&v->lock);
}

static void virtio_9p_drain(struct virtio *d)
{
	struct virtio_9p *v = of(d);

	pthread_mutex_lock(&v->lock);
	while (v->busy || v->pending)
		pthread_cond_wait(&v->changed, &v->lock);
	pthread_mutex_unlock(&v->lock);
}

/* While it is not busy, nobody else uses the session. */
static void virtio_9p_reset(struct virtio *d)
{
	struct virtio_9p *v = of(d);

	pthread_mutex_lock(&v->lock);
	v->pending = false;
	while (v->busy)
		pthread_cond_wait(&v->changed, &v->lock);
	p9_reset(v->p9);
	pthread_mutex_unlock(&v->lock);
}

/* Both while the thread has nothing to do: after drain(), and before the device runs. */
static int virtio_9p_save(struct virtio *d, struct buf *out, struct err *e)
{
	return p9_save(of(d)->p9, out, e);
}

static int virtio_9p_restore(struct virtio *d, struct cursor *in, struct err *e)
{
	return p9_restore(of(d)->p9, in, e);
}

static void virtio_9p_destroy(struct virtio *d)
{
	struct virtio_9p *v = of(d);

	if (v->started) {
		pthread_mutex_lock(&v->lock);
		v->quit = true;
		pthread_cond_broadcast(&v->changed);
		pthread_mutex_unlock(&v->lock);
		pthread_join(v->thread, NULL);
	}
	p9_destroy(v->p9);
	pthread_cond_destroy(&v->changed);
	pthread_mutex_destroy(&v->lock);
	virtio_deinit(d);
	free(v);
}

int virtio_9p_new(struct virtio **out, const struct gmem *mem, const char *tag,
		  const struct p9_share *share, struct err *e)
{
	static const struct virtio_ops ops = {
		.start = virtio_9p_start,
		.kick = virtio_9p_kick,
		.reset = virtio_9p_reset,
		.drain = virtio_9p_drain,
		.save = virtio_9p_save,
		.restore = virtio_9p_restore,
		.destroy = virtio_9p_destroy,
	};
	struct virtio_9p *v = calloc(1, sizeof(*v));
	uint16_t len = (uint16_t)strlen(tag);
	int ret;

	if (!v)
		return err_set(e, ENOMEM, "out of memory");
	if (!len || len > VIRTIO_9P_TAG_MAX) {
		free(v);
		return err_set(e, EINVAL, "share %.100s: a tag has 1 to %u bytes", tag,
			       VIRTIO_9P_TAG_MAX);
	}
	snprintf(v->name, sizeof(v->name), "9p-%s", tag);
	v->d.id = VIRTIO_ID_9P;
	v->d.name = v->name;
	v->d.features = F_MOUNT_TAG;
	v->d.nqueues = 1;
	v->d.ops = &ops;
	memcpy(v->d.config, &len, sizeof(len));
	memcpy(v->d.config + sizeof(len), tag, len);
	v->d.config_len = (unsigned int)sizeof(len) + len;
	pthread_mutex_init(&v->lock, NULL);
	pthread_cond_init(&v->changed, NULL);
	virtio_init(&v->d, mem);
	ret = p9_create(&v->p9, share, e);
	if (ret) {
		virtio_9p_destroy(&v->d);
		return ret;
	}
	*out = &v->d;
	return 0;
}

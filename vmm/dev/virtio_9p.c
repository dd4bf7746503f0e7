/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/dev/virtio_9p.h"

#include "base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_PREFIX "9p-"
#define F_MOUNT_TAG (UINT64_C(1) << 0) /* VIRTIO_9P_MOUNT_TAG */

struct virtio_9p {
	struct virtio d;
	/* Used by the thread, or by a resetting vCPU while the thread is idle. */
	struct p9_process *p9;
	char name[VIRTIO_9P_TAG_MAX + 8]; /* NAME_PREFIX, then the tag */
	void (*ended)(void *ctx, const char *tag, const char *how);
	void *ended_ctx;
	pthread_t thread;
	bool started;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool pending, busy, quit; /* under lock */
	struct virtio_chain chain;
};

static struct virtio_9p *of(struct virtio *d)
{
	return (struct virtio_9p *)d; /* its first member */
}

static void virtio_9p_ended(struct virtio_9p *v)
{
	if (v->ended)
		v->ended(v->ended_ctx, v->name + strlen(NAME_PREFIX), p9_process_how(v->p9));
	v->ended = NULL;
}

/*
 * Returns an error reply, and its length, if the process is gone: a driver that gets no reply waits
 * forever (Linux ignores NEEDS_RESET), so each request fails with EIO.
 */
static size_t virtio_9p_refuse(struct virtio_9p *v, size_t len, uint8_t answer[P9_ERROR_LEN])
{
	bool quit;

	pthread_mutex_lock(&v->lock);
	quit = v->quit;
	pthread_mutex_unlock(&v->lock);
	if (!quit)
		virtio_9p_ended(v);
	return p9_error(p9_process_request(v->p9), len, EIO, answer);
}

/* Answers the request in the current chain, which also has the room for the reply. */
static bool virtio_9p_answer(struct virtio_9p *v)
{
	struct virtio_chain *c = &v->chain;
	size_t len = c->out_len < P9_MSIZE ? c->out_len : P9_MSIZE;
	size_t cap = c->in_len < P9_MSIZE ? c->in_len : P9_MSIZE, n;
	const uint8_t *answer = p9_process_reply(v->p9);
	uint8_t refused[P9_ERROR_LEN];

	if (virtio_chain_read(c, 0, p9_process_request(v->p9), len) != len)
		return false;
	if (p9_process_handle(v->p9, len, cap, &n)) {
		n = cap < sizeof(refused) ? 0 : virtio_9p_refuse(v, len, refused);
		answer = refused;
	}
	if (!n)
		return false;
	virtio_chain_write(c, 0, answer, n);
	virtio_push(&v->d, 0, c->head, (uint32_t)n);
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

/* Resets the session while the thread is idle, because then nothing else uses the session. */
static void virtio_9p_reset(struct virtio *d)
{
	struct virtio_9p *v = of(d);

	pthread_mutex_lock(&v->lock);
	v->pending = false;
	while (v->busy)
		pthread_cond_wait(&v->changed, &v->lock);
	if (p9_process_reset(v->p9))
		virtio_9p_ended(v);
	pthread_mutex_unlock(&v->lock);
}

/*
 * Saves the session while the thread is idle: after drain(). virtio_9p_restore() is called before
 * the device runs.
 */
static int virtio_9p_save(struct virtio *d, struct buf *out, struct err *e)
{
	return p9_process_save(of(d)->p9, out, e);
}

static int virtio_9p_restore(struct virtio *d, struct cursor *in, struct err *e)
{
	return p9_process_restore(of(d)->p9, in, e);
}

static void virtio_9p_destroy(struct virtio *d)
{
	struct virtio_9p *v = of(d);

	if (v->started) {
		pthread_mutex_lock(&v->lock);
		v->quit = true;
		if (v->busy) /* nothing waits for that reply, which may never come */
			p9_process_kill(v->p9);
		pthread_cond_broadcast(&v->changed);
		pthread_mutex_unlock(&v->lock);
		pthread_join(v->thread, NULL);
	}
	p9_process_end(v->p9);
	pthread_cond_destroy(&v->changed);
	pthread_mutex_destroy(&v->lock);
	virtio_deinit(d);
	free(v);
}

int virtio_9p_new(struct virtio **out, const struct gmem *mem, const struct virtio_9p_config *cfg,
		  struct err *e)
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
	uint16_t len = (uint16_t)strlen(cfg->tag);
	int ret;

	if (!v)
		return err_nomem(e);
	if (!len || len > VIRTIO_9P_TAG_MAX) {
		free(v);
		return err_set(e, EINVAL, "share %.100s: a tag has 1 to %u bytes", cfg->tag,
			       VIRTIO_9P_TAG_MAX);
	}
	snprintf(v->name, sizeof(v->name), NAME_PREFIX "%s", cfg->tag);
	v->ended = cfg->ended;
	v->ended_ctx = cfg->ended_ctx;
	v->d.id = VIRTIO_ID_9P;
	v->d.name = v->name;
	v->d.features = F_MOUNT_TAG;
	v->d.nqueues = 1;
	v->d.ops = &ops;
	memcpy(v->d.config, &len, sizeof(len));
	memcpy(v->d.config + sizeof(len), cfg->tag, len);
	v->d.config_len = (unsigned int)sizeof(len) + len;
	pthread_mutex_init(&v->lock, NULL);
	pthread_cond_init(&v->changed, NULL);
	virtio_init(&v->d, mem);
	ret = p9_process_start(&v->p9, &cfg->share, &cfg->confine, e);
	if (ret) {
		virtio_9p_destroy(&v->d);
		return ret;
	}
	*out = &v->d;
	return 0;
}

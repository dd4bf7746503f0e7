/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/dev/virtio_console.h"

#include "vmm/dev/virtio_deferred.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { QUEUE_RECEIVE, QUEUE_TRANSMIT, QUEUES };
#define F_EMERG_WRITE (UINT64_C(1) << 2)

/* struct virtio_console_config, 5.3.4: cols, rows (2 each), ports, emergency byte (4 each). */
#define CONFIG_EMERG 8u
#define CONFIG_LEN 12u

/* Maximum bytes typed for which the guest has not provided buffers yet. */
#define INPUT_MAX 1024u
/* Maximum bytes of one piece of output; Linux writes at most a page. */
#define OUTPUT_MAX (1u << 20)
/* Bytes of one notification that are written on the vCPU's thread, before the last piece. */
#define KICK_BYTES (1u << 16)

struct virtio_console {
	struct virtio d; /* first: cast from it */
	struct virtio_deferred deferred;
	void (*put)(void *ctx, uint8_t byte);
	void *ctx;
	pthread_mutex_t lock; /* protects the input; held while the receive queue is used */
	uint8_t input[INPUT_MAX];
	size_t n;
};

/* Delivers as much of the input as there are buffers for. Called with the lock. */
static void deliver(struct virtio_console *c)
{
	struct virtio_chain chain;
	size_t put;

	while (c->n && virtio_pop(&c->d, QUEUE_RECEIVE, &chain)) {
		if (!chain.in_len || chain.out_len) {
			virtio_fail(&c->d);
			return;
		}
		put = virtio_chain_write(&chain, 0, c->input, c->n);
		c->n -= put;
		memmove(c->input, c->input + put, c->n);
		virtio_push(&c->d, QUEUE_RECEIVE, chain.head, (uint32_t)put);
	}
}

static bool transmit(struct virtio *d, unsigned int q)
{
	struct virtio_console *c = (struct virtio_console *)d;
	struct virtio_chain chain;
	size_t bytes = 0;

	for (unsigned int n = 0; n < VIRTIO_KICK_CHAINS && bytes < KICK_BYTES; n++) {
		if (!virtio_pop(d, q, &chain))
			return false;
		if (chain.in_len || chain.out_len > OUTPUT_MAX) {
			virtio_fail(d);
			return false;
		}
		for (unsigned int i = 0; i < chain.nout; i++) {
			const uint8_t *p = chain.iov[i].iov_base;

			for (size_t k = 0; k < chain.iov[i].iov_len; k++)
				c->put(c->ctx, p[k]);
		}
		bytes += chain.out_len;
		virtio_push(d, q, chain.head, 0);
	}
	return true;
}

static int virtio_console_start(struct virtio *d, struct err *e)
{
	return virtio_deferred_start(&((struct virtio_console *)d)->deferred, e);
}

static void virtio_console_kick(struct virtio *d, unsigned int q)
{
	struct virtio_console *c = (struct virtio_console *)d;

	if (q == QUEUE_TRANSMIT) {
		virtio_deferred_kick(&c->deferred, q);
		return;
	}
	pthread_mutex_lock(&c->lock);
	deliver(c);
	pthread_mutex_unlock(&c->lock);
}

/*
 * Resets the device. After this thread has had the lock, no other thread uses the queue, because
 * virtio_pop() returns nothing.
 */
static void virtio_console_reset(struct virtio *d)
{
	struct virtio_console *c = (struct virtio_console *)d;

	virtio_deferred_stop(&c->deferred);
	pthread_mutex_lock(&c->lock);
	pthread_mutex_unlock(&c->lock);
}

static void config_written(struct virtio *d, unsigned int off, unsigned int len)
{
	struct virtio_console *c = (struct virtio_console *)d;

	(void)len;
	if (off == CONFIG_EMERG)
		c->put(c->ctx, d->config[CONFIG_EMERG]);
}

static int virtio_console_save(struct virtio *d, struct buf *out, struct err *e)
{
	struct virtio_console *c = (struct virtio_console *)d;

	(void)e;
	buf_u32(out, (uint32_t)c->n);
	buf_add(out, c->input, c->n);
	return 0;
}

static int virtio_console_restore(struct virtio *d, struct cursor *in, struct err *e)
{
	struct virtio_console *c = (struct virtio_console *)d;
	uint32_t n = cursor_u32(in);
	const uint8_t *bytes = n <= INPUT_MAX ? cursor_bytes(in, n) : NULL;

	if (!bytes)
		return err_set(e, EINVAL, "the saved state of %s: %u bytes of input", d->name, n);
	memcpy(c->input, bytes, n);
	c->n = n;
	return 0;
}

static void virtio_console_destroy(struct virtio *d)
{
	struct virtio_console *c = (struct virtio_console *)d;

	virtio_deferred_deinit(&c->deferred);
	virtio_deinit(d);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

int virtio_console_new(struct virtio **out, const struct gmem *mem,
		       void (*put)(void *ctx, uint8_t byte), void *ctx, struct err *e)
{
	static const struct virtio_ops ops = {
		.start = virtio_console_start,
		.kick = virtio_console_kick,
		.reset = virtio_console_reset,
		.drain = virtio_console_reset,
		.config_written = config_written,
		.save = virtio_console_save,
		.restore = virtio_console_restore,
		.destroy = virtio_console_destroy,
	};
	struct virtio_console *c = calloc(1, sizeof(*c));

	if (!c)
		return err_nomem(e);
	c->d.id = VIRTIO_ID_CONSOLE;
	c->d.name = "hvc0";
	c->d.features = F_EMERG_WRITE;
	c->d.nqueues = QUEUES;
	c->d.config_len = CONFIG_LEN;
	c->d.ops = &ops;
	c->put = put;
	c->ctx = ctx;
	pthread_mutex_init(&c->lock, NULL);
	virtio_init(&c->d, mem);
	virtio_deferred_init(&c->deferred, &c->d, transmit);
	*out = &c->d;
	return 0;
}

bool virtio_console_ready(struct virtio *d)
{
	return atomic_load(&d->status) & VIRTIO_DRIVER_OK;
}

size_t virtio_console_input(struct virtio *d, const uint8_t *data, size_t len)
{
	struct virtio_console *c = (struct virtio_console *)d;

	pthread_mutex_lock(&c->lock);
	if (len > INPUT_MAX - c->n)
		len = INPUT_MAX - c->n;
	memcpy(c->input + c->n, data, len);
	c->n += len;
	deliver(c);
	pthread_mutex_unlock(&c->lock);
	return len;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/dev/virtio_rng.h"

#include "vmm/dev/virtio_deferred.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

/*
 * Maximum bytes of one request, so that it cannot take long: a device may return less than
 * requested (5.4.6).
 */
#define REQUEST_MAX 4096u

struct virtio_rng {
	struct virtio d; /* first: cast from it */
	struct virtio_deferred deferred;
};

/*
 * Fills a chain. getrandom() returns up to 256 bytes completely, and does not block once the host
 * has booted.
 */
static uint32_t virtio_rng_fill(const struct virtio_chain *c)
{
	uint8_t bytes[256];
	size_t done = 0;

	while (done < c->in_len && done < REQUEST_MAX) {
		if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
			break;
		done += virtio_chain_write(c, done, bytes, sizeof(bytes));
	}
	return (uint32_t)done;
}

static bool virtio_rng_serve(struct virtio *d, unsigned int q)
{
	struct virtio_chain c;

	for (unsigned int i = 0; i < VIRTIO_KICK_CHAINS; i++) {
		if (!virtio_pop(d, q, &c))
			return false;
		if (!c.in_len || c.out_len) {
			virtio_fail(d);
			return false;
		}
		virtio_push(d, q, c.head, virtio_rng_fill(&c));
	}
	return true;
}

static int virtio_rng_start(struct virtio *d, struct err *e)
{
	return virtio_deferred_start(&((struct virtio_rng *)d)->deferred, e);
}

static void virtio_rng_kick(struct virtio *d, unsigned int q)
{
	virtio_deferred_kick(&((struct virtio_rng *)d)->deferred, q);
}

static void virtio_rng_stop(struct virtio *d)
{
	virtio_deferred_stop(&((struct virtio_rng *)d)->deferred);
}

static void virtio_rng_destroy(struct virtio *d)
{
	virtio_deferred_deinit(&((struct virtio_rng *)d)->deferred);
	virtio_deinit(d);
	free(d);
}

int virtio_rng_new(struct virtio **out, const struct gmem *mem, struct err *e)
{
	static const struct virtio_ops ops = {
		.start = virtio_rng_start,
		.kick = virtio_rng_kick,
		.reset = virtio_rng_stop,
		.drain = virtio_rng_stop,
		.destroy = virtio_rng_destroy,
	};
	struct virtio_rng *r = calloc(1, sizeof(*r));
	struct virtio *d;

	if (!r)
		return err_nomem(e);
	d = &r->d;
	d->id = VIRTIO_ID_RNG;
	d->name = "rng";
	d->nqueues = 1;
	d->ops = &ops;
	virtio_init(d, mem);
	virtio_deferred_init(&r->deferred, d, virtio_rng_serve);
	*out = d;
	return 0;
}

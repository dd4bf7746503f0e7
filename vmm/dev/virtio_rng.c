/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/dev/virtio_rng.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

/* A device may give less than was asked for (5.4.6): so one request can't take long. */
#define REQUEST_MAX 4096u

/* getrandom() for up to 256 bytes is complete, and neither waits once the host has booted. */
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

static void virtio_rng_kick(struct virtio *d, unsigned int q)
{
	struct virtio_chain c;

	while (virtio_pop(d, q, &c)) {
		if (!c.in_len || c.out_len) {
			virtio_fail(d);
			return;
		}
		virtio_push(d, q, c.head, virtio_rng_fill(&c));
	}
}

static void virtio_rng_destroy(struct virtio *d)
{
	virtio_deinit(d);
	free(d);
}

int virtio_rng_new(struct virtio **out, const struct gmem *mem, struct err *e)
{
	static const struct virtio_ops ops = { .kick = virtio_rng_kick,
					       .destroy = virtio_rng_destroy };
	struct virtio *d = calloc(1, sizeof(*d));

	if (!d)
		return err_set(e, ENOMEM, "out of memory");
	d->id = VIRTIO_ID_RNG;
	d->name = "rng";
	d->nqueues = 1;
	d->ops = &ops;
	virtio_init(d, mem);
	*out = d;
	return 0;
}

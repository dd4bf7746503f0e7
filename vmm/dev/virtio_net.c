/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/dev/virtio_net.h"

#include "base/hash.h"
#include "vmm/dev/virtio_rest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { QUEUE_RECEIVE, QUEUE_TRANSMIT, QUEUES };
#define F_MAC (UINT64_C(1) << 5)
#define F_STATUS (UINT64_C(1) << 16)
#define LINK_UP 1u

/* struct virtio_net_hdr, 5.1.6: before each frame; all zero but for num_buffers at its end. */
#define HEADER 12u
#define HEADER_BUFFERS 10u
#define FRAME_MIN 14u

/* struct virtio_net_config: mac (6), status (2). */
#define CONFIG_LEN 8u

struct virtio_net {
	struct virtio d; /* first: cast from it */
	struct virtio_rest rest;
	struct net_link *link;
	pthread_mutex_t receive_lock; /* held while the receive queue is worked on */
};

/* On the link's thread. Without a buffer the frame is lost, as on a wire. */
static void virtio_net_receive(void *ctx, const uint8_t *frame, size_t len)
{
	static const uint8_t header[HEADER] = { [HEADER_BUFFERS] = 1 };
	struct virtio_net *n = ctx;
	struct virtio_chain c;

	pthread_mutex_lock(&n->receive_lock);
	if (virtio_pop(&n->d, QUEUE_RECEIVE, &c)) {
		if (c.out_len || c.in_len < HEADER + len) {
			virtio_fail(&n->d); /* 5.1.6.3.1: 1526 bytes at least */
		} else {
			virtio_chain_write(&c, 0, header, HEADER);
			virtio_chain_write(&c, HEADER, frame, len);
			virtio_push(&n->d, QUEUE_RECEIVE, c.head, (uint32_t)(HEADER + len));
		}
	}
	pthread_mutex_unlock(&n->receive_lock);
}

static int virtio_net_start(struct virtio *d, struct err *e)
{
	struct virtio_net *n = (struct virtio_net *)d;

	int ret = virtio_rest_start(&n->rest, e);

	return ret ? ret : n->link->start(n->link, e);
}

static bool virtio_net_transmit(struct virtio *d, unsigned int q)
{
	struct virtio_net *n = (struct virtio_net *)d;
	uint8_t frame[NET_FRAME_MAX];
	struct virtio_chain c;

	for (unsigned int i = 0; i < VIRTIO_KICK_CHAINS; i++) {
		if (!virtio_pop(d, q, &c))
			return false;
		if (c.in_len || c.out_len < HEADER) {
			virtio_fail(d);
			return false;
		}
		if (c.out_len >= HEADER + FRAME_MIN && c.out_len <= HEADER + NET_FRAME_MAX)
			n->link->send(n->link, frame,
				      virtio_chain_read(&c, HEADER, frame, sizeof(frame)));
		virtio_push(d, q, c.head, 0);
	}
	return true;
}

static void virtio_net_kick(struct virtio *d, unsigned int q)
{
	/* Buffers to receive into wait until there is a frame. */
	if (q == QUEUE_TRANSMIT)
		virtio_rest_kick(&((struct virtio_net *)d)->rest, q);
}

/* Nobody has the lock once we had it, and what comes then finds no queue. */
static void virtio_net_reset(struct virtio *d)
{
	struct virtio_net *n = (struct virtio_net *)d;

	virtio_rest_stop(&n->rest);
	pthread_mutex_lock(&n->receive_lock);
	pthread_mutex_unlock(&n->receive_lock);
}

static void virtio_net_destroy(struct virtio *d)
{
	struct virtio_net *n = (struct virtio_net *)d;

	virtio_rest_deinit(&n->rest); /* it sends to the link */
	if (n->link)
		n->link->destroy(n->link);
	virtio_deinit(d);
	pthread_mutex_destroy(&n->receive_lock);
	free(n);
}

/*
 * Locally administered, and the same each time. Machines whose taps meet on a bridge have
 * different ones by the names of these (FNV-1a).
 */
static void make_address(const struct net_config *cfg, uint8_t mac[6])
{
	uint32_t hash = hash_text32(cfg->kind == NET_TAP ? cfg->tap : "user", SIZE_MAX);

	memcpy(mac, "\x52\x54", 2);
	memcpy(mac + 2, &hash, sizeof(hash));
}

int virtio_net_new(struct virtio **out, const struct gmem *mem, const struct net_config *cfg,
		   struct err *e)
{
	static const struct virtio_ops ops = {
		.start = virtio_net_start,
		.kick = virtio_net_kick,
		.reset = virtio_net_reset,
		.drain = virtio_net_reset,
		.destroy = virtio_net_destroy,
	};
	struct virtio_net *n = calloc(1, sizeof(*n));
	int ret;

	if (!n)
		return err_set(e, ENOMEM, "out of memory");
	n->d.id = VIRTIO_ID_NET;
	n->d.name = "net0";
	n->d.features = F_MAC | F_STATUS;
	n->d.nqueues = QUEUES;
	n->d.config_len = CONFIG_LEN;
	make_address(cfg, n->d.config);
	n->d.config[6] = LINK_UP;
	n->d.ops = &ops;
	pthread_mutex_init(&n->receive_lock, NULL);
	virtio_init(&n->d, mem);
	virtio_rest_init(&n->rest, &n->d, virtio_net_transmit);
	ret = cfg->kind == NET_TAP ? net_tap_new(&n->link, cfg, virtio_net_receive, n, e)
				   : net_user_new(&n->link, cfg, virtio_net_receive, n, e);
	if (ret)
		virtio_net_destroy(&n->d);
	else
		*out = &n->d;
	return ret;
}

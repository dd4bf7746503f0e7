/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/dev/virtio_net.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/thread.h"
#include "vmm/dev/net_tap.h"
#include "vmm/dev/net_user.h"
#include "vmm/dev/virtio_deferred.h"
#include "vmm/dev/rate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { QUEUE_RECEIVE, QUEUE_TRANSMIT, QUEUES };
#define F_MAC (UINT64_C(1) << 5)
#define F_STATUS (UINT64_C(1) << 16)
#define LINK_UP 1u

/* struct virtio_net_hdr, 5.1.6: precedes each frame; all zero except for num_buffers at its end. */
#define HEADER 12u
#define HEADER_BUFFERS 10u

/* struct virtio_net_config: mac (6), status (2). */
#define CONFIG_LEN 8u

struct virtio_net {
	struct virtio d; /* first: cast from it */
	struct virtio_deferred deferred;
	struct net_link *link;
	struct dev_io io;
	pthread_mutex_t receive_lock; /* held while the receive queue is used */
	bool ended;		      /* nothing is received any more; protected by receive_lock */
	/* The limits of both directions; each one is used by one thread only. */
	struct rate sent, received;
	pthread_mutex_t wait_lock; /* for the link's thread while it waits for its limit */
	pthread_cond_t hurried;
	/* The wait ends; protected by wait_lock. */
	bool hurry;
	atomic_uint_fast64_t packets[2], bytes[2],
		lost[2]; /* counts for IO_SENT and for IO_RECEIVED */
};

/* Facts about a notification, for the records of its packets. */
struct net_kick {
	uint64_t notified_ns, token; /* token 0: not requested yet, or none */
};

/* -- records of packets ----------------------------------------------------------------------- */

static uint64_t net_now(const struct virtio_net *n)
{
	return n->io.done ? clock_mono_ns() : 0;
}

static void net_note(struct virtio_net *n, const struct io_record *r)
{
	unsigned int i = r->type == IO_RECEIVED;

	if (r->status == IO_OK) {
		atomic_fetch_add_explicit(&n->packets[i], 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&n->bytes[i], r->bytes, memory_order_relaxed);
	} else {
		atomic_fetch_add_explicit(&n->lost[i], 1, memory_order_relaxed);
	}
	if (n->io.done)
		n->io.done(n->io.ctx, r);
}

/* -- from the link ---------------------------------------------------------------------------- */

/* Delivers a frame to the guest. Returns false if there is no buffer. Called with receive_lock. */
static bool net_deliver(struct virtio_net *n, const uint8_t *frame, size_t len, struct io_record *r)
{
	static const uint8_t header[HEADER] = { [HEADER_BUFFERS] = 1 };
	struct virtio_chain c;

	if (!virtio_pop(&n->d, QUEUE_RECEIVE, &c))
		return false;
	if (c.out_len || c.in_len < HEADER + len) {
		virtio_fail(&n->d); /* 5.1.6.3.1: 1526 bytes at least */
		return false;
	}
	virtio_chain_write(&c, 0, header, HEADER);
	virtio_chain_write(&c, HEADER, frame, len);
	r->complete_ns = net_now(n);
	if (virtio_push(&n->d, QUEUE_RECEIVE, c.head, (uint32_t)(HEADER + len)))
		r->raised_ns = net_now(n);
	return true;
}

/*
 * Blocks the link's thread until the limit allows the frame, so that senders are slowed down and
 * nothing is lost.
 */
static void net_wait_turn(struct virtio_net *n, size_t len)
{
	uint64_t now = clock_mono_ns(), at = rate_next_ns(&n->received);

	pthread_mutex_lock(&n->wait_lock);
	while (now < at && !n->hurry) {
		thread_cond_wait_until(&n->hurried, &n->wait_lock, at);
		now = clock_mono_ns();
	}
	pthread_mutex_unlock(&n->wait_lock);
	rate_take(&n->received, now, len);
}

static void net_hurry(struct virtio_net *n)
{
	pthread_mutex_lock(&n->wait_lock);
	n->hurry = true;
	pthread_cond_broadcast(&n->hurried);
	pthread_mutex_unlock(&n->wait_lock);
}

/* Delivers a frame. Without a buffer it is lost, as on a wire. Called on the link's thread. */
static void virtio_net_receive(void *ctx, const uint8_t *frame, size_t len)
{
	struct virtio_net *n = ctx;
	struct io_record r = { .type = IO_RECEIVED, .bytes = len, .submit_ns = net_now(n) };

	if (rate_is_limited(&n->received))
		net_wait_turn(n, len);
	pthread_mutex_lock(&n->receive_lock);
	if (!n->ended) {
		r.status = net_deliver(n, frame, len, &r) ? IO_OK : IO_ERROR;
		net_note(n, &r);
	}
	pthread_mutex_unlock(&n->receive_lock);
}

static int virtio_net_start(struct virtio *d, struct err *e)
{
	struct virtio_net *n = (struct virtio_net *)d;

	int ret = virtio_deferred_start(&n->deferred, e);

	return ret ? ret : n->link->start(n->link, e);
}

/* -- to the link ------------------------------------------------------------------------------ */

static void net_send(struct virtio_net *n, unsigned int q, const struct virtio_chain *c,
		     const struct net_kick *kick)
{
	struct io_record r = {
		.type = IO_SENT,
		.status = IO_ERROR,
		.token = kick->token,
		.notified_ns = kick->notified_ns,
		.submit_ns = net_now(n),
		.bytes = c->out_len - HEADER,
	};
	uint8_t frame[NET_FRAME_MAX];

	if (r.bytes >= NET_FRAME_MIN && r.bytes <= NET_FRAME_MAX &&
	    n->link->send(n->link, frame, virtio_chain_read(c, HEADER, frame, sizeof(frame)))) {
		r.status = IO_OK;
		r.complete_ns = net_now(n);
	}
	if (virtio_push(&n->d, q, c->head, 0))
		r.raised_ns = net_now(n);
	net_note(n, &r);
}

/* Takes the next chain to send. Returns false if there is none, or a malformed one. */
static bool net_pop(struct virtio_net *n, unsigned int q, struct virtio_chain *c)
{
	if (!virtio_pop(&n->d, q, c))
		return false;
	if (!c->in_len && c->out_len >= HEADER)
		return true;
	virtio_fail(&n->d);
	return false;
}

/*
 * Sends at most VIRTIO_KICK_CHAINS chains. Returns whether there may be more. `ask`: request a
 * token for the notification.
 */
static bool net_transmit(struct virtio_net *n, unsigned int q, struct net_kick *kick, bool ask)
{
	struct virtio_chain c;

	for (unsigned int i = 0; i < VIRTIO_KICK_CHAINS; i++) {
		if (!net_pop(n, q, &c))
			return false;
		if (ask && !i)
			kick->token = n->io.batch(n->io.ctx);
		net_send(n, q, &c, kick);
	}
	return true;
}

/* Sends as many chains as the limit allows now. Returns whether to check again later. */
static bool net_transmit_limited(struct virtio_net *n, unsigned int q)
{
	struct net_kick none = { 0 };
	struct virtio_chain c;

	for (unsigned int i = 0; i < VIRTIO_KICK_CHAINS; i++) {
		uint64_t now = clock_mono_ns();

		if (now < rate_next_ns(&n->sent)) {
			virtio_deferred_pause(&n->deferred, rate_next_ns(&n->sent));
			return true;
		}
		if (!net_pop(n, q, &c))
			return false;
		rate_take(&n->sent, now, c.out_len - HEADER);
		net_send(n, q, &c, &none);
	}
	return true;
}

/*
 * Sends what a notification has left, on the thread for that; the vCPU that notified is not known
 * any more.
 */
static bool virtio_net_transmit(struct virtio *d, unsigned int q)
{
	struct virtio_net *n = (struct virtio_net *)d;
	struct net_kick none = { 0 };

	return rate_is_limited(&n->sent) ? net_transmit_limited(n, q)
					 : net_transmit(n, q, &none, false);
}

static void virtio_net_kick(struct virtio *d, unsigned int q)
{
	struct virtio_net *n = (struct virtio_net *)d;
	struct net_kick kick = { .notified_ns = net_now(n) };

	/* Buffers for receiving stay in the queue until a frame arrives. */
	if (q != QUEUE_TRANSMIT)
		return;
	if (rate_is_limited(&n->sent) || net_transmit(n, q, &kick, n->io.done != NULL))
		virtio_deferred_add(&n->deferred, q);
}

/* -- called by virtio and the machine --------------------------------------------------------- */

/*
 * Resets the device. After this thread has had the lock, no other thread uses the queue, because
 * virtio_pop() returns nothing.
 */
static void virtio_net_reset(struct virtio *d)
{
	struct virtio_net *n = (struct virtio_net *)d;

	virtio_deferred_stop(&n->deferred);
	pthread_mutex_lock(&n->receive_lock);
	pthread_mutex_unlock(&n->receive_lock);
}

/*
 * Sends what a limit has left in the queue, while the vCPUs are stopped: it would not be handled
 * before the guest's next notification, which a full queue never causes.
 */
static void virtio_net_drain(struct virtio *d)
{
	struct virtio_net *n = (struct virtio_net *)d;
	struct net_kick none = { 0 };

	virtio_net_reset(d);
	if (rate_is_limited(&n->sent))
		(void)net_transmit(n, QUEUE_TRANSMIT, &none, false);
}

static void virtio_net_destroy(struct virtio *d)
{
	struct virtio_net *n = (struct virtio_net *)d;

	net_hurry(n);
	virtio_deferred_deinit(&n->deferred); /* it sends to the link */
	if (n->link)
		n->link->destroy(n->link);
	virtio_deinit(d);
	pthread_mutex_destroy(&n->receive_lock);
	pthread_mutex_destroy(&n->wait_lock);
	pthread_cond_destroy(&n->hurried);
	free(n);
}

/*
 * Makes a locally administered address that is the same in each run. Machines whose taps are
 * connected by a bridge get different ones from the names of the taps (FNV-1a).
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
		.drain = virtio_net_drain,
		.destroy = virtio_net_destroy,
	};
	struct virtio_net *n = calloc(1, sizeof(*n));
	int ret;

	if (!n)
		return err_nomem(e);
	n->d.id = VIRTIO_ID_NET;
	n->d.name = "net0";
	n->d.features = F_MAC | F_STATUS;
	n->d.nqueues = QUEUES;
	n->d.config_len = CONFIG_LEN;
	make_address(cfg, n->d.config);
	n->d.config[6] = LINK_UP;
	n->d.ops = &ops;
	pthread_mutex_init(&n->receive_lock, NULL);
	pthread_mutex_init(&n->wait_lock, NULL);
	thread_cond_init(&n->hurried);
	rate_init(&n->sent, &cfg->limit);
	rate_init(&n->received, &cfg->limit);
	virtio_init(&n->d, mem);
	virtio_deferred_init(&n->deferred, &n->d, virtio_net_transmit);
	ret = cfg->kind == NET_TAP ? net_tap_new(&n->link, cfg, virtio_net_receive, n, e)
				   : net_user_new(&n->link, cfg, virtio_net_receive, n, e);
	if (ret)
		virtio_net_destroy(&n->d);
	else
		*out = &n->d;
	return ret;
}

void virtio_net_watch(struct virtio *d, const struct dev_io *io)
{
	((struct virtio_net *)d)->io = *io;
}

void virtio_net_stats(const struct virtio *d, struct net_stats *out)
{
	struct virtio_net *n = (struct virtio_net *)d;

	*out = (struct net_stats){
		.sent = atomic_load_explicit(&n->packets[0], memory_order_relaxed),
		.sent_bytes = atomic_load_explicit(&n->bytes[0], memory_order_relaxed),
		.received = atomic_load_explicit(&n->packets[1], memory_order_relaxed),
		.received_bytes = atomic_load_explicit(&n->bytes[1], memory_order_relaxed),
		.not_sent = atomic_load_explicit(&n->lost[0], memory_order_relaxed),
		.not_received = atomic_load_explicit(&n->lost[1], memory_order_relaxed),
	};
}

void virtio_net_end(struct virtio *d)
{
	struct virtio_net *n = (struct virtio_net *)d;

	pthread_mutex_lock(&n->receive_lock);
	n->ended = true;
	pthread_mutex_unlock(&n->receive_lock);
}

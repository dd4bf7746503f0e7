/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/dev/virtio_blk.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/thread.h"
#include "vmm/dev/virtio_blk_request.h"
#include "vmm/dev/virtio_poll.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Feature bits (5.2.3). */
#define F_SEG_MAX (UINT64_C(1) << 2)
#define F_RO (UINT64_C(1) << 5)
#define F_BLK_SIZE (UINT64_C(1) << 6)
#define F_FLUSH (UINT64_C(1) << 9)
#define F_TOPOLOGY (UINT64_C(1) << 10)
#define F_CONFIG_WCE (UINT64_C(1) << 11)
#define F_MQ (UINT64_C(1) << 12)
#define F_DISCARD (UINT64_C(1) << 13)
#define F_WRITE_ZEROES (UINT64_C(1) << 14)

/* Config space (5.2.4). */
#define CONFIG_CAPACITY 0u
#define CONFIG_SEG_MAX 12u
#define CONFIG_BLK_SIZE 20u
#define CONFIG_PHYSICAL_EXP 24u
#define CONFIG_MIN_IO 26u
#define CONFIG_WRITEBACK 32u
#define CONFIG_NUM_QUEUES 34u
#define CONFIG_DISCARD_SECTORS 36u
#define CONFIG_DISCARD_SEGMENTS 40u
#define CONFIG_DISCARD_ALIGN 44u
#define CONFIG_ZEROES_SECTORS 48u
#define CONFIG_ZEROES_SEGMENTS 52u
#define CONFIG_ZEROES_UNMAP 56u
#define CONFIG_LEN 60u

/* log2 of the sectors in a page of the host: smaller writes cost the host a read. */
#define PHYSICAL_EXP 3u

#define THREADS 4u
/*
 * Maximum number of chains of one notification that the vCPU's thread takes: other vCPUs could keep
 * adding more, and this one has to return to the guest.
 */
#define KICK_CHAINS (4u * VIRTIO_QUEUE_SIZE)
/*
 * Maximum bytes that one notification copies on the vCPU's thread; other requests can run
 * meanwhile.
 */
#define KICK_BYTES (1u << 20)
/*
 * A request of this size takes longer to copy than waking another thread to help with the next one.
 */
#define SHARE_BYTES (1u << 16)

struct virtio_blk {
	struct virtio d;
	/* write_through is set when the driver is ready, or when it changes the cache mode */
	struct blk_target target;
	struct dev_io io;
	struct virtio_poll *poll;   /* NULL: the vCPU of each request must be known */
	uint8_t config[CONFIG_LEN]; /* initial contents */
	unsigned int index;
	pthread_t thread[THREADS];
	unsigned int threads;
	unsigned int vcpus;
	pthread_mutex_t lock;		   /* protects the members below */
	pthread_cond_t work, idle;	   /* work has arrived; none is left */
	struct blk_request *first, **last; /* waiting requests, oldest first */
	bool again[VIRTIO_BLK_MAX_QUEUES]; /* a thread must continue with this queue */
	struct rate rate;
	pthread_cond_t sooner; /* ends waits for the limit: hurry, ending */
	unsigned int hurry;    /* number of threads that wait for the device to be idle */
	unsigned int working;  /* number of busy threads */
	bool ending;
	atomic_uint_fast64_t requests[IO_TYPES], bytes[IO_TYPES], errors;
};

static struct virtio_blk *blk_of(struct virtio *d)
{
	return (struct virtio_blk *)((char *)d - offsetof(struct virtio_blk, d));
}

/* -- a request --------------------------------------------------------------------- */

static void virtio_blk_finish(struct virtio_blk *b, const struct blk_request *r, int status)
{
	int type = virtio_blk_request_io_type(r);
	struct io_record rec = {
		.token = r->token,
		.sector = r->sector,
		.bytes = r->bytes,
		.submit_ns = r->submit_ns,
		.notified_ns = r->notified_ns,
		.begun_ns = r->begun_ns,
		.device = (uint8_t)b->index,
		.type = (uint8_t)type,
		.status = (uint8_t)status,
	};

	if (status != IO_OK) {
		atomic_fetch_add_explicit(&b->errors, 1, memory_order_relaxed);
	} else if (type >= 0) {
		atomic_fetch_add_explicit(&b->requests[type], 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&b->bytes[type], r->bytes, memory_order_relaxed);
	}
	/* The record comes first, so that a reader that sees the guest's completion finds it. */
	if (type >= 0 && b->io.done) {
		rec.complete_ns = clock_mono_ns();
		b->io.done(b->io.ctx, &rec);
	}
	*(volatile uint8_t *)r->status = (uint8_t)status;
	if (virtio_push(&b->d, r->queue, r->head, r->written) && type >= 0 && b->io.done) {
		rec.type = IO_RAISED;
		rec.complete_ns = clock_mono_ns();
		b->io.done(b->io.ctx, &rec);
	}
}

static int virtio_blk_run(const struct virtio_blk *b, struct blk_request *r, enum blk_wait wait)
{
	if (b->io.done)
		r->begun_ns = clock_mono_ns();
	return virtio_blk_request_run(r, &b->target, wait);
}

static void virtio_blk_acknowledged(struct virtio *d)
{
	const struct virtio_blk *b = blk_of(d);
	struct io_record rec = { .device = (uint8_t)b->index, .type = IO_HANDLED };

	if (!b->io.done)
		return;
	rec.complete_ns = clock_mono_ns();
	b->io.done(b->io.ctx, &rec);
}

/* Takes the next request of queue q. Returns false if there is none. */
static bool blk_pop(struct virtio_blk *b, unsigned int q, struct blk_request *r,
		    struct virtio_chain *c)
{
	if (!virtio_pop(&b->d, q, c))
		return false;
	if (virtio_blk_request_parse(r, c, (uint16_t)q) < 0) {
		virtio_fail(&b->d);
		return false;
	}
	if (b->io.done)
		r->submit_ns = clock_mono_ns();
	return true;
}

/* -- threads ------------------------------------------------------------------------ */

static void enqueue(struct virtio_blk *b, const struct blk_request *r, bool waits)
{
	struct blk_request *copy = virtio_blk_request_copy(r);

	if (!copy) {
		virtio_blk_finish(b, r, IO_ERROR);
		return;
	}
	copy->next = NULL;
	copy->waits = waits;
	pthread_mutex_lock(&b->lock);
	*b->last = copy;
	b->last = &copy->next;
	pthread_cond_signal(&b->work);
	pthread_mutex_unlock(&b->lock);
}

static void go_on_taking(struct virtio_blk *b, unsigned int q)
{
	pthread_mutex_lock(&b->lock);
	b->again[q] = true;
	pthread_cond_signal(&b->work);
	pthread_mutex_unlock(&b->lock);
}

/* Returns a queue to continue with, or -1. Called with the lock. */
static int queue_to_take(struct virtio_blk *b)
{
	for (unsigned int q = 0; q < b->d.nqueues; q++)
		if (b->again[q]) {
			b->again[q] = false;
			return (int)q;
		}
	return -1;
}

/*
 * Waits until the limit allows this request, unless a thread waits for the device to be idle.
 * Called with the lock.
 */
static void blk_wait_turn(struct virtio_blk *b, const struct blk_request *r)
{
	uint64_t now = clock_mono_ns(), at = rate_next_ns(&b->rate);

	/* Taken before the wait, so that the next thread waits for these bytes, too. */
	rate_take(&b->rate, now > at ? now : at, r->bytes);
	while (now < at && !b->hurry && !b->ending) {
		thread_cond_wait_until(&b->sooner, &b->lock, at);
		now = clock_mono_ns();
	}
}

/* Executes requests that a notification left in the queue; their token is lost. */
static void take_rest(struct virtio_blk *b, unsigned int q)
{
	struct virtio_chain c;
	struct blk_request r;

	for (unsigned int i = 0; i < KICK_CHAINS; i++) {
		if (!blk_pop(b, q, &r, &c))
			return;
		if (rate_is_limited(&b->rate)) {
			pthread_mutex_lock(&b->lock);
			blk_wait_turn(b, &r);
			pthread_mutex_unlock(&b->lock);
		}
		virtio_blk_finish(b, &r, virtio_blk_run(b, &r, BLK_MAY_WAIT));
	}
	go_on_taking(b, q);
}

/* Returns the oldest waiting request, or NULL. Called with the lock. */
static struct blk_request *dequeue(struct virtio_blk *b)
{
	struct blk_request *r = b->first;

	if (r)
		b->first = r->next;
	if (!b->first)
		b->last = &b->first;
	return r;
}

static void *work(void *arg)
{
	struct virtio_blk *b = arg;

	pthread_mutex_lock(&b->lock);
	while (!b->ending) {
		struct blk_request *r = dequeue(b);
		int q = r ? -1 : queue_to_take(b);

		if (!r && q < 0) {
			pthread_cond_wait(&b->work, &b->lock);
			continue;
		}
		b->working++;
		if (r && rate_is_limited(&b->rate))
			blk_wait_turn(b, r);
		pthread_mutex_unlock(&b->lock);
		if (r)
			virtio_blk_finish(b, r, virtio_blk_run(b, r, BLK_MAY_WAIT));
		else
			take_rest(b, (unsigned int)q);
		free(r);
		pthread_mutex_lock(&b->lock);
		if (--b->working == 0)
			pthread_cond_broadcast(&b->idle);
	}
	pthread_mutex_unlock(&b->lock);
	return NULL;
}

static bool is_idle(const struct virtio_blk *b)
{
	for (unsigned int q = 0; q < b->d.nqueues; q++)
		if (b->again[q])
			return false;
	return !b->first && !b->working;
}

static void virtio_blk_drain(struct virtio *d)
{
	struct virtio_blk *b = blk_of(d);

	if (b->poll)
		virtio_poll_stop(b->poll);
	pthread_mutex_lock(&b->lock);
	b->hurry++;
	pthread_cond_broadcast(&b->sooner);
	while (!is_idle(b))
		pthread_cond_wait(&b->idle, &b->lock);
	b->hurry--;
	pthread_mutex_unlock(&b->lock);
}

/* Discards waiting requests. Called with the lock. */
static void drop_waiting(struct virtio_blk *b)
{
	for (struct blk_request *r = dequeue(b); r; r = dequeue(b))
		free(r);
	memset(b->again, 0, sizeof(b->again));
}

/* -- called by virtio ------------------------------------------------------------------------- */

/*
 * Executes r on this thread. Passes it to the other threads if it would wait, or if its bytes,
 * added to *bytes, exceed KICK_BYTES. bytes NULL: no limit.
 */
static void run_or_enqueue(struct virtio_blk *b, struct blk_request *r, uint64_t *bytes)
{
	int status = -EAGAIN;

	if (bytes)
		*bytes += r->bytes;
	if (!rate_is_limited(&b->rate) && (!bytes || *bytes <= KICK_BYTES))
		status = virtio_blk_run(b, r, BLK_NO_WAIT);
	if (status == -EAGAIN)
		enqueue(b, r, true);
	else
		virtio_blk_finish(b, r, status);
}

/*
 * Executes what is left of a shared batch, whether or not the thread that was woken has begun (the
 * host may be busy).
 */
static void help(struct virtio_blk *b, uint64_t *bytes)
{
	for (;;) {
		struct blk_request *r = NULL;

		pthread_mutex_lock(&b->lock);
		if (b->first && !b->first->waits && *bytes + b->first->bytes <= KICK_BYTES)
			r = dequeue(b);
		pthread_mutex_unlock(&b->lock);
		if (!r)
			return;
		run_or_enqueue(b, r, bytes);
		free(r);
	}
}

/*
 * Shares large requests with the other threads: each one is passed to them once there is a next
 * one, and the last one is executed here meanwhile.
 */
static void blk_kick(struct virtio *d, unsigned int q)
{
	struct virtio_blk *b = blk_of(d);
	/* chains of the request that is kept and of the one just taken */
	struct virtio_chain chain[2];
	struct blk_request request[2];
	uint64_t token = 0, bytes = 0, now = b->io.done ? clock_mono_ns() : 0;
	unsigned int i, slot = 0;
	bool kept = false, shared = false;

	for (i = 0; i < KICK_CHAINS; i++) {
		struct blk_request *r = &request[slot];

		if (!blk_pop(b, q, r, &chain[slot]))
			break;
		if (!token && b->io.done && virtio_blk_request_io_type(r) >= 0)
			token = b->io.batch(b->io.ctx);
		r->token = token;
		r->notified_ns = now;
		if (r->bytes >= SHARE_BYTES) {
			slot = !slot;
			if (kept)
				enqueue(b, &request[slot], false);
			shared |= kept;
			kept = true;
		} else {
			run_or_enqueue(b, r, &bytes);
		}
	}
	if (kept)
		run_or_enqueue(b, &request[!slot], &bytes);
	if (shared && !rate_is_limited(&b->rate))
		help(b, &bytes);
	if (i == KICK_CHAINS)
		go_on_taking(b, q);
	else if (b->poll)
		virtio_poll_kicked(b->poll, q);
}

/* Takes and executes requests of queue q. Called on the polling thread. */
static unsigned int virtio_blk_serve(struct virtio *d, unsigned int q)
{
	struct virtio_blk *b = blk_of(d);
	struct virtio_chain c;
	struct blk_request r;
	unsigned int n;

	for (n = 0; n < KICK_CHAINS && blk_pop(b, q, &r, &c); n++)
		run_or_enqueue(b, &r, NULL);
	return n;
}

/*
 * Determines whether each write must be made durable: without FLUSH the driver cannot request a
 * flush (5.2.6.2).
 */
static void choose_cache(struct virtio_blk *b, uint64_t agreed)
{
	b->target.write_through =
		!(agreed & F_FLUSH) || ((agreed & F_CONFIG_WCE) && !b->d.config[CONFIG_WRITEBACK]);
}

static void activate(struct virtio *d, uint64_t features)
{
	choose_cache(blk_of(d), features);
}

static void blk_reset(struct virtio *d)
{
	struct virtio_blk *b = blk_of(d);

	pthread_mutex_lock(&b->lock);
	drop_waiting(b);
	pthread_mutex_unlock(&b->lock);
	virtio_blk_drain(d);
	d->config[CONFIG_WRITEBACK] = 1;
}

/*
 * Handles a write to the config space. Only one byte belongs to the driver, and only if it accepted
 * the feature: the others are restored.
 */
static void config_written(struct virtio *d, unsigned int off, unsigned int len)
{
	struct virtio_blk *b = blk_of(d);
	uint8_t writeback;

	(void)off;
	(void)len;
	pthread_mutex_lock(&d->config_lock);
	writeback = (d->agreed & F_CONFIG_WCE) ? d->config[CONFIG_WRITEBACK] & 1 : 1;
	memcpy(d->config, b->config, CONFIG_LEN);
	d->config[CONFIG_WRITEBACK] = writeback;
	pthread_mutex_unlock(&d->config_lock);
	choose_cache(b, d->agreed);
}

static void virtio_blk_destroy(struct virtio *d)
{
	struct virtio_blk *b = blk_of(d);

	disk_stop(b->target.disk); /* a thread that waits for it must return */
	virtio_poll_destroy(b->poll);
	pthread_mutex_lock(&b->lock);
	b->ending = true;
	drop_waiting(b);
	pthread_cond_broadcast(&b->work);
	pthread_cond_broadcast(&b->sooner);
	pthread_mutex_unlock(&b->lock);
	for (unsigned int i = 0; i < b->threads; i++)
		pthread_join(b->thread[i], NULL);
	pthread_mutex_destroy(&b->lock);
	pthread_cond_destroy(&b->work);
	pthread_cond_destroy(&b->idle);
	pthread_cond_destroy(&b->sooner);
	virtio_deinit(d);
	free(b);
}

static int virtio_blk_start(struct virtio *d, struct err *e)
{
	struct virtio_blk *b = blk_of(d);
	const struct virtio_poll_config polled = { d, virtio_blk_serve, b->vcpus };
	int ret = 0;

	for (; !ret && b->threads < THREADS; b->threads += !ret)
		ret = thread_start(&b->thread[b->threads], THREAD_DISK, work, b);
	if (ret)
		return err_set(e, ret, "%s: cannot start a thread: %s", d->name, strerror(ret));
	/* A polling thread would find requests before the limit allows them. */
	return b->io.done || rate_is_limited(&b->rate) ? 0
						       : virtio_poll_create(&b->poll, &polled, e);
}

/*
 * Nothing is saved for a snapshot: counters begin at 0 in each run, and the cache mode is in
 * config.
 */
static const struct virtio_ops ops = {
	.start = virtio_blk_start,
	.kick = blk_kick,
	.activate = activate,
	.reset = blk_reset,
	.config_written = config_written,
	.acknowledged = virtio_blk_acknowledged,
	.drain = virtio_blk_drain,
	.destroy = virtio_blk_destroy,
};

static void blk_config_put(uint8_t *config, unsigned int off, uint64_t v, unsigned int len)
{
	memcpy(config + off, &v, len);
}

static void fill_config(struct virtio_blk *b)
{
	uint8_t *c = b->config;

	blk_config_put(c, CONFIG_CAPACITY, disk_size(b->target.disk) / DISK_SECTOR, 8);
	blk_config_put(c, CONFIG_SEG_MAX, VIRTIO_MAX_IOV - 2, 4); /* besides header and status */
	blk_config_put(c, CONFIG_BLK_SIZE, DISK_SECTOR, 4);
	blk_config_put(c, CONFIG_PHYSICAL_EXP, PHYSICAL_EXP, 1);
	blk_config_put(c, CONFIG_MIN_IO, 1u << PHYSICAL_EXP, 2);
	blk_config_put(c, CONFIG_WRITEBACK, 1, 1);
	blk_config_put(c, CONFIG_NUM_QUEUES, b->d.nqueues, 2);
	blk_config_put(c, CONFIG_DISCARD_SECTORS, BLK_MAX_SEGMENT_SECTORS, 4);
	blk_config_put(c, CONFIG_DISCARD_SEGMENTS, BLK_MAX_SEGMENTS, 4);
	blk_config_put(c, CONFIG_DISCARD_ALIGN, 1u << PHYSICAL_EXP, 4);
	blk_config_put(c, CONFIG_ZEROES_SECTORS, BLK_MAX_SEGMENT_SECTORS, 4);
	blk_config_put(c, CONFIG_ZEROES_SEGMENTS, BLK_MAX_SEGMENTS, 4);
	blk_config_put(c, CONFIG_ZEROES_UNMAP, 1, 1);
	memcpy(b->d.config, c, CONFIG_LEN);
	b->d.config_len = CONFIG_LEN;
}

int virtio_blk_create(struct virtio **out, const struct gmem *mem,
		      const struct virtio_blk_config *cfg, struct err *e)
{
	struct virtio_blk *b = calloc(1, sizeof(*b));
	unsigned int n = cfg->queues;

	if (!b)
		return err_set(e, ENOMEM, "%s: out of memory", cfg->name);
	b->target.disk = cfg->disk;
	if (cfg->serial)
		memcpy(b->target.id, cfg->serial, strnlen(cfg->serial, sizeof(b->target.id)));
	b->io = cfg->io;
	b->vcpus = cfg->queues;
	b->index = cfg->index;
	b->last = &b->first;
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->work, NULL);
	pthread_cond_init(&b->idle, NULL);
	thread_cond_init(&b->sooner);
	rate_init(&b->rate, &cfg->limit);
	b->d.id = VIRTIO_ID_BLOCK;
	b->d.name = cfg->name;
	b->d.nqueues = n < 1 ? 1 : n > VIRTIO_BLK_MAX_QUEUES ? VIRTIO_BLK_MAX_QUEUES : n;
	b->d.ops = &ops;
	b->d.features = F_SEG_MAX | F_BLK_SIZE | F_FLUSH | F_TOPOLOGY | F_CONFIG_WCE | F_MQ;
	b->d.features |= disk_is_read_only(cfg->disk) ? F_RO : F_DISCARD | F_WRITE_ZEROES;
	fill_config(b);
	virtio_init(&b->d, mem);
	*out = &b->d;
	return 0;
}

void virtio_blk_stats(const struct virtio *d, struct io_stats *out)
{
	struct virtio_blk *b = blk_of((struct virtio *)d);

	for (unsigned int i = 0; i < IO_TYPES; i++) {
		out->requests[i] = atomic_load_explicit(&b->requests[i], memory_order_relaxed);
		out->bytes[i] = atomic_load_explicit(&b->bytes[i], memory_order_relaxed);
	}
	out->errors = atomic_load_explicit(&b->errors, memory_order_relaxed);
}

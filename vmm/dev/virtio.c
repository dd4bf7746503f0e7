/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The split virtqueue (VIRTIO 1.2, 2.7), device side:
 *
 * 	descriptor	addr (8)  len (4)  flags (2)  next (2)
 * 	available ring	flags (2)  idx (2)  ring (2)*size  used_event (2)
 * 	used ring	flags (2)  idx (2)  {id (4) len (4)}*size  avail_event (2)
 *
 * All of it is in guest RAM and may change at any time: an index or descriptor is copied once, and
 * the copy is checked and used. Every address in it goes through gmem_ptr(). A chain has no more
 * steps than a queue has descriptors, so loops end.
 */
#include "vmm/dev/virtio.h"

#include <errno.h>
#include <string.h>

#define DESC_SIZE 16u
#define DESC_NEXT 1u
#define DESC_WRITE 2u
#define DESC_INDIRECT 4u
#define AVAIL_NO_INTERRUPT 1u
#define USED_NO_NOTIFY 1u
#define AVAIL_RING 4u /* offsets of the rings after flags and index */
#define USED_RING 4u
#define USED_ENTRY 8u

/* Alignments, 2.7. */
#define DESC_ALIGN 16u
#define AVAIL_ALIGN 2u
#define USED_ALIGN 4u

#define CHAIN_MAX_BYTES (UINT64_C(1) << 30)

/* Status bits that only a reset clears. */
#define STICKY (VIRTIO_NEEDS_RESET | VIRTIO_FEATURES_OK | VIRTIO_DRIVER_OK)

#define OFFERED_ALWAYS (VIRTIO_F_VERSION_1 | VIRTIO_F_INDIRECT_DESC | VIRTIO_F_EVENT_IDX)

struct desc {
	uint64_t addr;
	uint32_t len;
	uint16_t flags, next;
};
_Static_assert(sizeof(struct desc) == DESC_SIZE, "as in the specification");

void virtio_init(struct virtio *d, const struct gmem *mem)
{
	d->mem = mem;
	for (unsigned int i = 0; i < VIRTIO_MAX_QUEUES; i++) {
		pthread_mutex_init(&d->queue[i].lock, NULL);
		d->queue[i].size = VIRTIO_QUEUE_SIZE;
		d->queue[i].vector = VIRTIO_NO_VECTOR;
	}
	pthread_rwlock_init(&d->running, NULL);
	pthread_mutex_init(&d->config_lock, NULL);
}

void virtio_deinit(struct virtio *d)
{
	for (unsigned int i = 0; i < VIRTIO_MAX_QUEUES; i++)
		pthread_mutex_destroy(&d->queue[i].lock);
	pthread_rwlock_destroy(&d->running);
	pthread_mutex_destroy(&d->config_lock);
}

static bool is_running(const struct virtio *d)
{
	return (atomic_load(&((struct virtio *)d)->status) & VIRTIO_DRIVER_OK) &&
	       !atomic_load(&((struct virtio *)d)->failed);
}

static void virtio_interrupt(struct virtio *d, unsigned int q)
{
	atomic_fetch_add_explicit(&d->interrupts, 1, memory_order_relaxed);
	if (d->interrupt)
		d->interrupt(d->transport, q);
}

void virtio_fail(struct virtio *d)
{
	atomic_fetch_add_explicit(&d->bad, 1, memory_order_relaxed);
	if (atomic_exchange(&d->failed, true))
		return;
	/* 2.1.2: reported by a configuration change if the driver is active. */
	if (atomic_fetch_or(&d->status, VIRTIO_NEEDS_RESET) & VIRTIO_DRIVER_OK)
		virtio_interrupt(d, UINT32_MAX);
}

/* -- the rings ------------------------------------------------------------------- */

/*
 * Reads a 16-bit field of a ring. Returns -EFAULT outside of RAM. Rings are aligned, so the read is
 * atomic.
 */
static int load16(const struct virtio *d, uint64_t gpa, uint16_t *out)
{
	const uint16_t *p = gmem_ptr(d->mem, gpa, 2);

	if (!p)
		return -EFAULT;
	*out = __atomic_load_n(p, __ATOMIC_ACQUIRE);
	return 0;
}

static int store16(const struct virtio *d, uint64_t gpa, uint16_t v)
{
	uint16_t *p = gmem_ptr(d->mem, gpa, 2);

	if (!p)
		return -EFAULT;
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
	return 0;
}

static bool virtio_has(const struct virtio *d, uint64_t feature)
{
	return d->agreed & feature;
}

/* Adds one buffer; device-readable ones come first (2.7.4.2). */
static int add_buffer(const struct virtio *d, struct virtio_chain *c, const struct desc *desc)
{
	bool in = desc->flags & DESC_WRITE;
	size_t *sum = in ? &c->in_len : &c->out_len;
	unsigned int n = c->nout + c->nin;
	void *p;

	if (n == VIRTIO_MAX_IOV || (!in && c->nin))
		return -EINVAL;
	p = gmem_ptr(d->mem, desc->addr, desc->len); /* also NULL for length 0 */
	if (!p || desc->len > CHAIN_MAX_BYTES - *sum)
		return -EINVAL;
	*sum += desc->len;
	c->iov[n] = (struct iovec){ p, desc->len };
	if (in)
		c->nin++;
	else
		c->nout++;
	return 0;
}

/*
 * Walks the chain that begins at `head` of a table. Calls itself for an indirect table, which must
 * not lead to another one.
 */
static int virtq_walk(const struct virtio *d, uint64_t table, uint32_t entries, uint32_t head,
		      bool indirect, struct virtio_chain *c)
{
	for (uint32_t steps = 0; steps < entries; steps++) {
		struct desc desc;
		int ret;

		if (head >= entries ||
		    gmem_read(d->mem, table + (uint64_t)head * DESC_SIZE, &desc, sizeof(desc)))
			return -EINVAL;
		if (desc.flags & DESC_INDIRECT) {
			if (indirect || !virtio_has(d, VIRTIO_F_INDIRECT_DESC) ||
			    (desc.flags & DESC_NEXT) || !desc.len || desc.len % DESC_SIZE ||
			    desc.len / DESC_SIZE > VIRTIO_MAX_IOV ||
			    !gmem_ptr(d->mem, desc.addr, desc.len))
				return -EINVAL;
			return virtq_walk(d, desc.addr, desc.len / DESC_SIZE, 0, true, c);
		}
		ret = add_buffer(d, c, &desc);
		if (ret)
			return ret;
		if (!(desc.flags & DESC_NEXT))
			return 0;
		head = desc.next;
	}
	return -EINVAL; /* a loop */
}

/*
 * Requests a notification once the available index passes this one (2.7.10). Called with the lock.
 */
static int set_event(const struct virtio *d, const struct virtio_queue *q, uint16_t index)
{
	return store16(d, q->used + USED_RING + (uint64_t)q->size * USED_ENTRY, index);
}

/* Returns 1, 0 if there is no chain, or -EINVAL for an invalid one. Called with the lock. */
static int virtq_pop(const struct virtio *d, struct virtio_queue *q, struct virtio_chain *c)
{
	uint16_t idx, n, head;

	if (load16(d, q->avail + 2, &idx))
		return -EINVAL;
	if (idx == q->next_avail && virtio_has(d, VIRTIO_F_EVENT_IDX) && !q->quiet) {
		/*
		 * Check again: a chain may have been added before the driver saw the event index.
		 */
		if (set_event(d, q, q->next_avail))
			return -EINVAL;
		atomic_thread_fence(memory_order_seq_cst);
		if (load16(d, q->avail + 2, &idx))
			return -EINVAL;
	}
	n = (uint16_t)(idx - q->next_avail);
	if (!n)
		return 0;
	/*
	 * A chain occupies a descriptor of the queue until it is returned, so available chains and
	 * chains in flight are at most that many. This limits what a device model stores of
	 * requests.
	 */
	if (n > q->size - q->inflight ||
	    load16(d, q->avail + AVAIL_RING + 2 * (uint64_t)(q->next_avail % q->size), &head))
		return -EINVAL;
	c->head = head;
	c->nout = c->nin = 0;
	c->out_len = c->in_len = 0;
	if (virtq_walk(d, q->desc, q->size, head, false, c))
		return -EINVAL;
	q->next_avail++;
	q->inflight++;
	return 1;
}

int virtio_pop(struct virtio *d, unsigned int qi, struct virtio_chain *c)
{
	struct virtio_queue *q = &d->queue[qi];
	int ret = 0;

	pthread_mutex_lock(&q->lock);
	if (is_running(d) && q->enabled && !atomic_load(&d->held))
		ret = virtq_pop(d, q, c);
	pthread_mutex_unlock(&q->lock);
	if (ret < 0) {
		virtio_fail(d);
		return 0;
	}
	if (ret)
		atomic_fetch_add_explicit(&d->chains, 1, memory_order_relaxed);
	return ret;
}

void virtio_quiet(struct virtio *d, unsigned int qi, bool on)
{
	struct virtio_queue *q = &d->queue[qi];
	int ret = 0;

	pthread_mutex_lock(&q->lock);
	if (is_running(d) && q->enabled && q->quiet != on) {
		q->quiet = on;
		if (virtio_has(d,
			       VIRTIO_F_EVENT_IDX)) /* an index that was passed, or the next one */
			ret = set_event(d, q, (uint16_t)(q->next_avail - on));
		else
			ret = store16(d, q->used, on ? USED_NO_NOTIFY : 0);
		/* Before the caller checks the queue again. */
		atomic_thread_fence(memory_order_seq_cst);
	}
	pthread_mutex_unlock(&q->lock);
	if (ret)
		virtio_fail(d);
}

/*
 * Returns whether the driver wants an interrupt for entries up to next_used, or -EFAULT outside of
 * RAM.
 */
static int wants_interrupt(const struct virtio *d, struct virtio_queue *q)
{
	uint16_t v, old = q->signalled;

	q->signalled = q->next_used;
	if (!virtio_has(d, VIRTIO_F_EVENT_IDX))
		return load16(d, q->avail, &v) ? -EFAULT : !(v & AVAIL_NO_INTERRUPT);
	if (load16(d, q->avail + AVAIL_RING + 2 * (uint64_t)q->size, &v))
		return -EFAULT;
	/* vring_need_event() of 2.7.10: has the index just passed the event? */
	return (uint16_t)(q->next_used - v - 1) < (uint16_t)(q->next_used - old);
}

static int virtq_push(const struct virtio *d, struct virtio_queue *q, uint16_t head,
		      uint32_t written)
{
	uint32_t entry[2] = { head, written };

	if (gmem_write(d->mem,
		       q->used + USED_RING + USED_ENTRY * (uint64_t)(q->next_used % q->size), entry,
		       sizeof(entry)))
		return -EFAULT;
	q->next_used++;
	/* Before the driver sees the entry, because it may reuse the chain at once. */
	q->inflight--;
	if (store16(d, q->used + 2, q->next_used)) /* a release, after the entry */
		return -EFAULT;
	atomic_thread_fence(memory_order_seq_cst); /* before the driver's wish is read */
	return wants_interrupt(d, q);
}

bool virtio_push(struct virtio *d, unsigned int qi, uint16_t head, uint32_t written)
{
	struct virtio_queue *q = &d->queue[qi];
	int ret = 0;

	pthread_mutex_lock(&q->lock);
	if (is_running(d) && q->enabled && q->inflight)
		ret = virtq_push(d, q, head, written);
	pthread_mutex_unlock(&q->lock);
	if (ret < 0)
		virtio_fail(d);
	else if (ret)
		virtio_interrupt(d, qi);
	return ret > 0;
}

/* -- setup by the driver ---------------------------------------------------------------------- */

static uint64_t offered(const struct virtio *d)
{
	return d->features | OFFERED_ALWAYS;
}

uint32_t virtio_features_read(const struct virtio *d, uint32_t word)
{
	return word < 2 ? (uint32_t)(offered(d) >> 32 * word) : 0;
}

void virtio_features_write(struct virtio *d, uint32_t word, uint32_t bits)
{
	if (atomic_load(&d->status) & VIRTIO_FEATURES_OK)
		return;
	if (word < 2)
		d->agreed = (d->agreed & ~((uint64_t)UINT32_MAX << 32 * word)) |
			    (uint64_t)bits << 32 * word;
	else if (bits)
		virtio_fail(d); /* features that were not offered */
}

static void virtio_reset_device(struct virtio *d)
{
	/* From here on virtio_pop() returns nothing and virtio_push() does nothing. */
	atomic_store(&d->status, 0);
	if (d->ops->reset)
		d->ops->reset(d);
	for (unsigned int i = 0; i < d->nqueues; i++) {
		struct virtio_queue *q = &d->queue[i];

		pthread_mutex_lock(&q->lock);
		q->enabled = q->quiet = false;
		q->size = VIRTIO_QUEUE_SIZE;
		q->desc = q->avail = q->used = 0;
		q->next_avail = q->next_used = q->signalled = q->inflight = 0;
		pthread_mutex_unlock(&q->lock);
	}
	d->agreed = 0;
	/* A failure before ops->reset() returned belongs to the time before the reset. */
	atomic_store(&d->status, 0);
	atomic_store(&d->failed, false);
}

static bool features_fit(const struct virtio *d)
{
	return !(d->agreed & ~offered(d)) && virtio_has(d, VIRTIO_F_VERSION_1);
}

static void virtio_begin(struct virtio *d)
{
	if (!(atomic_load(&d->status) & VIRTIO_FEATURES_OK)) /* wrong order: 3.1.1 */
		virtio_fail(d);
	else if (d->ops->activate)
		d->ops->activate(d, d->agreed);
}

void virtio_set_status(struct virtio *d, uint8_t status)
{
	unsigned int old;

	pthread_rwlock_wrlock(&d->running);
	old = atomic_load(&d->status);
	if (!status) {
		virtio_reset_device(d);
	} else {
		if (!(old & VIRTIO_FEATURES_OK) && !features_fit(d))
			status &= (uint8_t)~VIRTIO_FEATURES_OK;
		/*
		 * Only this file sets these bits, only a reset clears them, and the driver cannot
		 * withdraw them. A device's thread may mark the device as failed meanwhile.
		 */
		while (!atomic_compare_exchange_weak(&d->status, &old, status | (old & STICKY)))
			;
		if (status & ~old & VIRTIO_DRIVER_OK)
			virtio_begin(d);
	}
	pthread_rwlock_unlock(&d->running);
}

struct virtio_queue *virtio_queue_setup(struct virtio *d, unsigned int q)
{
	return q < d->nqueues && !d->queue[q].enabled ? &d->queue[q] : NULL;
}

static bool queue_fits(const struct virtio *d, const struct virtio_queue *q)
{
	uint64_t n = q->size;

	return n && n <= VIRTIO_QUEUE_SIZE && !(n & (n - 1)) && !(q->desc % DESC_ALIGN) &&
	       !(q->avail % AVAIL_ALIGN) && !(q->used % USED_ALIGN) &&
	       gmem_ptr(d->mem, q->desc, n * DESC_SIZE) &&
	       gmem_ptr(d->mem, q->avail, AVAIL_RING + 2 * n + 2) &&
	       gmem_ptr(d->mem, q->used, USED_RING + USED_ENTRY * n + 2);
}

void virtio_queue_enable(struct virtio *d, unsigned int qi)
{
	struct virtio_queue *q = virtio_queue_setup(d, qi);
	bool fits;

	if (!q)
		return;
	pthread_mutex_lock(&q->lock);
	fits = queue_fits(d, q);
	q->enabled = fits;
	pthread_mutex_unlock(&q->lock);
	if (!fits)
		virtio_fail(d);
}

static void virtio_kick(struct virtio *d, unsigned int q)
{
	/* A reset on another vCPU waits until the model has finished. */
	pthread_rwlock_rdlock(&d->running);
	if (q < d->nqueues && is_running(d) && d->queue[q].enabled)
		d->ops->kick(d, q);
	pthread_rwlock_unlock(&d->running);
}

void virtio_notify(struct virtio *d, unsigned int q)
{
	atomic_fetch_add_explicit(&d->kicks, 1, memory_order_relaxed);
	virtio_kick(d, q);
}

/* -- configuration ------------------------------------------------------------------ */

uint64_t virtio_config_read(struct virtio *d, uint64_t off, unsigned int len)
{
	uint64_t v = 0;

	if (off >= d->config_len || len > d->config_len - off)
		return 0;
	pthread_mutex_lock(&d->config_lock);
	memcpy(&v, d->config + off, len);
	pthread_mutex_unlock(&d->config_lock);
	return v;
}

void virtio_config_write(struct virtio *d, uint64_t off, unsigned int len, uint64_t val)
{
	if (!d->ops->config_written || off >= d->config_len || len > d->config_len - off)
		return;
	pthread_mutex_lock(&d->config_lock);
	memcpy(d->config + off, &val, len);
	pthread_mutex_unlock(&d->config_lock);
	d->ops->config_written(d, (unsigned int)off, len);
}

/* -- snapshots ------------------------------------------------------------------------ */

void virtio_hold(struct virtio *d, bool on)
{
	atomic_store(&d->held, on);
	for (unsigned int q = 0; !on && q < d->nqueues; q++)
		virtio_kick(d, q);
}

int virtio_save(const struct virtio *d, struct buf *out, struct err *e)
{
	buf_u32(out, d->id);
	buf_u32(out, d->nqueues);
	buf_u32(out, d->config_len);
	buf_u32(out, atomic_load(&((struct virtio *)d)->status));
	buf_u8(out, atomic_load(&((struct virtio *)d)->failed));
	buf_u64(out, d->agreed);
	buf_add(out, d->config, d->config_len);
	for (unsigned int i = 0; i < d->nqueues; i++) {
		const struct virtio_queue *q = &d->queue[i];

		buf_u16(out, q->size);
		buf_u8(out, q->enabled);
		buf_u64(out, q->desc);
		buf_u64(out, q->avail);
		buf_u64(out, q->used);
		buf_u16(out, q->next_avail);
		buf_u16(out, q->next_used);
		buf_u16(out, q->signalled);
		buf_u16(out, q->vector);
	}
	if (d->ops->save) {
		int ret = d->ops->save((struct virtio *)d, out, e);

		if (ret)
			return ret;
	}
	return out->failed ? err_nomem(e) : 0;
}

static int bad_state(const struct virtio *d, const char *what, struct err *e)
{
	return err_set(e, EINVAL, "the saved state of %s: %s; it is of another machine or damaged",
		       d->name, what);
}

int virtio_restore(struct virtio *d, struct cursor *in, struct err *e)
{
	uint32_t id = cursor_u32(in), nqueues = cursor_u32(in), config_len = cursor_u32(in);
	uint32_t status = cursor_u32(in);
	bool failed = cursor_u8(in);
	uint64_t agreed = cursor_u64(in);
	const uint8_t *config;

	if (in->bad || id != d->id || nqueues != d->nqueues || config_len != d->config_len)
		return bad_state(d, "another kind of device, or another number of queues", e);
	if (status > UINT8_MAX || (agreed & ~offered(d)))
		return bad_state(d, "features or status that it does not have", e);
	config = cursor_bytes(in, config_len);
	if (config)
		memcpy(d->config, config, config_len);
	d->agreed = agreed;
	for (unsigned int i = 0; i < nqueues; i++) {
		struct virtio_queue *q = &d->queue[i];

		q->size = cursor_u16(in);
		q->enabled = cursor_u8(in);
		q->desc = cursor_u64(in);
		q->avail = cursor_u64(in);
		q->used = cursor_u64(in);
		q->next_avail = cursor_u16(in);
		q->next_used = cursor_u16(in);
		q->signalled = cursor_u16(in);
		q->vector = cursor_u16(in);
		q->inflight = 0; /* saved after drain() */
		if (in->bad || (q->enabled && !queue_fits(d, q))) {
			q->enabled = false;
			return bad_state(d, "a queue outside of memory", e);
		}
	}
	atomic_store(&d->failed, failed);
	if (d->ops->restore) {
		int ret = d->ops->restore(d, in, e);

		if (ret)
			return ret;
	}
	atomic_store(&d->status, status);
	if (is_running(d) && d->ops->activate)
		d->ops->activate(d, agreed);
	return 0;
}

/* Copies in one direction: between iov[0, n) and buf; `to`: to the guest's memory. */
static size_t chain_copy(const struct iovec *iov, unsigned int n, size_t off, uint8_t *buf,
			 size_t len, bool to)
{
	size_t done = 0;

	for (unsigned int i = 0; i < n && done < len; i++) {
		size_t part = iov[i].iov_len;
		uint8_t *at = iov[i].iov_base;

		if (off >= part) {
			off -= part;
			continue;
		}
		at += off;
		part -= off;
		off = 0;
		if (part > len - done)
			part = len - done;
		if (to)
			memcpy(at, buf + done, part);
		else
			memcpy(buf + done, at, part);
		done += part;
	}
	return done;
}

size_t virtio_chain_read(const struct virtio_chain *c, size_t off, void *dst, size_t len)
{
	return chain_copy(c->iov, c->nout, off, dst, len, false);
}

size_t virtio_chain_write(const struct virtio_chain *c, size_t off, const void *src, size_t len)
{
	/* buf is only read. */
	return chain_copy(c->iov + c->nout, c->nin, off, (uint8_t *)(uintptr_t)src, len, true);
}

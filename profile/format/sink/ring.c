/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/sink/ring.h"

#include "profile/format/sink/sink.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/*
 * Head of a sample in the buffer. n addresses follow, then a struct mem_refs if has_mem, then n
 * bytes of stack.exact. No sink needs more of a stack.
 */
struct ring_held {
	uint32_t len; /* bytes of the whole entry, a multiple of 8 */
	uint16_t n, n_kernel;
	struct profile_sample sample; /* without its stack and memory references */
	uint8_t end, user_end;
	bool has_mem;
};

struct sink_ring {
	struct sink_forward forward;
	uint8_t *data;
	size_t size;	   /* a multiple of 8 */
	size_t head, tail; /* offset of the next entry to write, and of the oldest one */
	size_t wrap;	   /* end of the entries before the wrap to 0; valid while head <= tail */
	size_t n;	   /* samples */
	atomic_uint_fast64_t overwritten;
	uint64_t *gone; /* samples replaced, per vCPU */
	unsigned int vcpus;
	struct stack stack; /* buffer for a sample that is forwarded */
	struct mem_refs mem;
};

static struct sink_ring *self(struct sink *s)
{
	return (struct sink_ring *)s;
}

/* -- the buffer ----------------------------------------------------------------------- */

static void drop_oldest(struct sink_ring *r)
{
	struct ring_held h;

	memcpy(&h, r->data + r->tail, sizeof(h));
	atomic_fetch_add_explicit(&r->overwritten, 1, memory_order_relaxed);
	if (h.sample.cpu < r->vcpus)
		r->gone[h.sample.cpu]++;
	r->tail += h.len;
	r->n--;
	/* The remaining entries begin at the front. */
	if (r->tail == r->wrap)
		r->tail = 0;
}

/* Drops the oldest entries until len bytes are free at head. */
static void make_room(struct sink_ring *r, size_t len)
{
	if (r->size - r->head < len) {
		/* Drop the entries between head and the end of the buffer, then continue at 0. */
		while (r->n && r->tail >= r->head && r->tail)
			drop_oldest(r);
		r->wrap = r->head;
		r->head = 0;
		if (!r->n)
			r->tail = 0;
	}
	while (r->n && r->tail >= r->head && r->tail - r->head < len)
		drop_oldest(r);
	if (!r->n)
		r->head = r->tail = 0;
}

static void ring_put(struct sink_ring *r, const struct profile_sample *s)
{
	const struct stack *st = s->stack;
	size_t ips = st->n * sizeof(*st->ip), mem = s->mem ? sizeof(*s->mem) : 0;
	size_t len = (sizeof(struct ring_held) + ips + mem + st->n + 7) & ~(size_t)7;
	struct ring_held h = {
		.len = (uint32_t)len,
		.n = st->n,
		.n_kernel = st->n_kernel,
		.sample = *s,
		.end = st->end,
		.user_end = st->user_end,
		.has_mem = s->mem != NULL,
	};
	uint8_t *at;

	h.sample.stack = NULL;
	h.sample.mem = NULL;
	make_room(r, len);
	at = r->data + r->head;
	memcpy(at, &h, sizeof(h));
	at += sizeof(h);
	memcpy(at, st->ip, ips);
	if (s->mem)
		memcpy(at + ips, s->mem, mem);
	memcpy(at + ips + mem, st->exact, st->n);
	r->head += len;
	if (r->head > r->tail)
		r->wrap = r->head;
	r->n++;
}

/* Forwards all samples to another sink, then reports the replaced ones as lost. */
static int replay(struct sink_ring *r, struct sink *to, struct err *e)
{
	size_t at = r->tail;
	uint64_t first_ns = 0;
	int ret = 0;

	for (size_t i = 0; !ret && i < r->n; i++) {
		const uint8_t *p = r->data + at;
		struct ring_held h;
		size_t ips;

		memcpy(&h, p, sizeof(h));
		p += sizeof(h);
		ips = h.n * sizeof(*r->stack.ip);
		r->stack.n = h.n;
		r->stack.n_kernel = h.n_kernel;
		r->stack.end = h.end;
		r->stack.user_end = h.user_end;
		memcpy(r->stack.ip, p, ips);
		p += ips;
		if (h.has_mem) {
			memcpy(&r->mem, p, sizeof(r->mem));
			p += sizeof(r->mem);
			h.sample.mem = &r->mem;
		}
		memcpy(r->stack.exact, p, h.n);
		h.sample.stack = &r->stack;
		if (!first_ns)
			first_ns = h.sample.time_ns;
		ret = to->ops->sample(to, &h.sample, e);
		at += h.len;
		if (at == r->wrap)
			at = 0;
	}
	for (unsigned int i = 0; !ret && first_ns && i < r->vcpus; i++)
		if (r->gone[i])
			ret = to->ops->lost(to, i, r->gone[i], first_ns, e);
	return ret;
}

/* -- operations ----------------------------------------------------------------------- */

static int op_begin(struct sink *s, const struct profile_info *info, struct err *e)
{
	struct sink_ring *r = self(s);

	r->gone = calloc(info->vcpus, sizeof(*r->gone));
	if (!r->gone)
		return err_nomem(e);
	r->vcpus = info->vcpus;
	return sink_forward_begin(s, info, e);
}

/* Forwards the kept samples first: they belong to the previous kernel. */
static int op_kernel(struct sink *s, const struct profile_kernel *k, struct err *e)
{
	struct sink_ring *r = self(s);
	int ret = replay(r, r->forward.to, e);

	r->n = r->head = r->tail = r->wrap = 0;
	memset(r->gone, 0, r->vcpus * sizeof(*r->gone));
	return ret ? ret : sink_forward_kernel(s, k, e);
}

static int op_sample(struct sink *s, const struct profile_sample *sample, struct err *e)
{
	(void)e;
	ring_put(self(s), sample);
	return 0;
}

static int op_end(struct sink *s, const struct profile_totals *totals, struct err *e)
{
	struct sink_ring *r = self(s);
	/* If the disk is full now, end() fails as well, and truncates the file to whole records. */
	struct err why = { 0 };
	int ret = replay(r, r->forward.to, &why);
	int end = sink_forward_end(s, totals, e);

	return end || !ret ? end : err_set(e, why.code, "%s", why.text);
}

static int op_copy(struct sink *s, const char *path, struct sink **out, struct err *e)
{
	struct sink_ring *r = self(s);
	struct sink *copy = NULL;
	int ret = sink_forward_copy(s, path, &copy, e);

	if (ret)
		return ret;
	ret = replay(r, copy, e);
	if (ret)
		copy->ops->destroy(copy);
	else
		*out = copy;
	return ret;
}

/* The file has no sample yet, and the crash may have left the buffer inconsistent. */
static int op_abandon(struct sink *s, enum sink_leftover rest, struct err *e)
{
	int ret = sink_forward_abandon(s, SINK_DROP, e);

	(void)rest;
	return ret ? ret : err_set(e, ENODATA, "what --overwrite kept is lost");
}

static void op_destroy(struct sink *s)
{
	struct sink_ring *r = self(s);

	if (!r)
		return;
	sink_forward_destroy(&r->forward);
	free(r->gone);
	free(r->data);
	free(r);
}

static const struct sink_ops ring_ops = {
	.begin = op_begin,
	.kernel = op_kernel,
	.fork = sink_forward_fork,
	.exit = sink_forward_exit,
	.comm = sink_forward_comm,
	.module = sink_forward_module,
	.map = sink_forward_map,
	.dso = sink_forward_dso,
	.sample = op_sample,
	.lost = sink_forward_lost,
	.marker = sink_forward_marker,
	.flush = sink_forward_flush,
	.end = op_end,
	.copy = op_copy,
	.abandon = op_abandon,
	.destroy = op_destroy,
};

int sink_ring_create(struct sink **out, struct sink *to, size_t size, struct err *e)
{
	struct sink_ring *r = calloc(1, sizeof(*r));

	if (!r) {
		to->ops->destroy(to);
		return err_nomem(e);
	}
	r->forward = (struct sink_forward){ { &ring_ops }, to };
	r->size = (size < SINK_RING_MIN ? SINK_RING_MIN : size) & ~(size_t)7;
	r->data = malloc(r->size);
	if (!r->data) {
		op_destroy(&r->forward.sink);
		return err_set(e, ENOMEM, "no memory for a ring of %zu bytes", size);
	}
	*out = &r->forward.sink;
	return 0;
}

uint64_t sink_ring_overwritten(const struct sink *s)
{
	const struct sink_ring *r = (const struct sink_ring *)s;

	return atomic_load_explicit(&r->overwritten, memory_order_relaxed);
}

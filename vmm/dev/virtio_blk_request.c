/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/dev/virtio_blk_request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HEADER 16u
#define SEGMENT 16u
/* Flag of a WRITE_ZEROES segment: the sectors may be deallocated. */
#define SEGMENT_UNMAP 1u

/* Drops the first len bytes, which must exist. */
static void virtio_blk_request_skip(struct iovec **iov, unsigned int *n, size_t len)
{
	while (len) {
		size_t some = (*iov)->iov_len < len ? (*iov)->iov_len : len;

		(*iov)->iov_base = (char *)(*iov)->iov_base + some;
		(*iov)->iov_len -= some;
		len -= some;
		if (!(*iov)->iov_len) {
			(*iov)++;
			(*n)--;
		}
	}
}

int virtio_blk_request_parse(struct blk_request *r, struct virtio_chain *c, uint16_t queue)
{
	struct iovec *in = c->iov + c->nout, *out = c->iov, *last;
	unsigned int nin = c->nin, nout = c->nout;
	uint8_t header[HEADER];
	struct cursor at;

	if (c->out_len < HEADER || !c->in_len)
		return -EINVAL;
	if (virtio_chain_read(c, 0, header, sizeof(header)) != sizeof(header))
		return -EINVAL;
	cursor_init(&at, header, sizeof(header));
	memset(r, 0, sizeof(*r));
	r->type = cursor_u32(&at);
	cursor_skip(&at, 4);
	r->sector = cursor_u64(&at);
	r->queue = queue;
	r->head = c->head;
	r->written = (uint32_t)c->in_len;
	while (!in[nin - 1].iov_len)
		nin--;
	last = &in[nin - 1];
	last->iov_len--;
	r->status = (uint8_t *)last->iov_base + last->iov_len;
	if (r->type == BLK_T_IN || r->type == BLK_T_GET_ID) {
		r->iov = in;
		r->n = nin;
		r->bytes = c->in_len - 1;
	} else {
		virtio_blk_request_skip(&out, &nout, HEADER);
		r->iov = out;
		r->n = nout;
		r->bytes = c->out_len - HEADER;
	}
	return 0;
}

struct blk_request *virtio_blk_request_copy(const struct blk_request *r)
{
	struct blk_request *copy = malloc(sizeof(*copy) + r->n * sizeof(struct iovec));

	if (!copy)
		return NULL;
	*copy = *r;
	copy->iov = (struct iovec *)(copy + 1);
	memcpy(copy->iov, r->iov, r->n * sizeof(struct iovec));
	return copy;
}

int virtio_blk_request_io_type(const struct blk_request *r)
{
	switch (r->type) {
	case BLK_T_IN:
		return IO_READ;
	case BLK_T_OUT:
		return IO_WRITE;
	case BLK_T_FLUSH:
		return IO_FLUSH;
	case BLK_T_DISCARD:
		return IO_DISCARD;
	case BLK_T_WRITE_ZEROES:
		return IO_ZEROES;
	default:
		return -1;
	}
}

static int status_of(int ret)
{
	return ret == -EAGAIN ? -EAGAIN : ret ? IO_ERROR : IO_OK;
}

static int transfer(struct blk_request *r, const struct blk_target *t, bool now)
{
	uint64_t off;
	int ret;

	if (r->bytes % DISK_SECTOR || __builtin_mul_overflow(r->sector, DISK_SECTOR, &off))
		return IO_ERROR;
	if (r->type == BLK_T_IN)
		return status_of(now ? disk_readv_now(t->disk, off, r->iov, r->n)
				     : disk_readv(t->disk, off, r->iov, r->n));
	if (now)
		return t->write_through ? -EAGAIN
					: status_of(disk_writev_now(t->disk, off, r->iov, r->n));
	ret = disk_writev(t->disk, off, r->iov, r->n);
	if (!ret && t->write_through)
		ret = disk_flush(t->disk);
	return status_of(ret);
}

static int get_id(const struct blk_request *r, const struct blk_target *t)
{
	size_t done = 0;

	for (unsigned int i = 0; i < r->n && done < sizeof(t->id); i++) {
		size_t left = sizeof(t->id) - done;
		size_t some = r->iov[i].iov_len < left ? r->iov[i].iov_len : left;

		memcpy(r->iov[i].iov_base, t->id + done, some);
		done += some;
	}
	return IO_OK;
}

/* Discards all segments. They are checked before the first one is executed. */
static int give_up(struct blk_request *r, const struct blk_target *t)
{
	uint8_t bytes[BLK_MAX_SEGMENTS * SEGMENT];
	uint64_t off[BLK_MAX_SEGMENTS], len[BLK_MAX_SEGMENTS], size = disk_size(t->disk);
	unsigned int n = 0;
	size_t have = 0;
	struct cursor c;
	int ret = 0;

	if (!r->bytes || r->bytes > sizeof(bytes) || r->bytes % SEGMENT)
		return IO_ERROR;
	for (unsigned int i = 0; i < r->n; i++) {
		memcpy(bytes + have, r->iov[i].iov_base, r->iov[i].iov_len);
		have += r->iov[i].iov_len;
	}
	r->bytes = 0;
	cursor_init(&c, bytes, have);
	while (cursor_left(&c)) {
		uint64_t sector = cursor_u64(&c);
		uint32_t sectors = cursor_u32(&c), flags = cursor_u32(&c);

		if (flags & ~SEGMENT_UNMAP || (flags && r->type == BLK_T_DISCARD))
			return IO_UNSUPPORTED;
		if (sectors > BLK_MAX_SEGMENT_SECTORS || sector > size / DISK_SECTOR ||
		    sectors > size / DISK_SECTOR - sector)
			return IO_ERROR;
		off[n] = sector * DISK_SECTOR;
		len[n] = (uint64_t)sectors * DISK_SECTOR;
		if (!n)
			r->sector = sector;
		r->bytes += len[n++];
	}
	for (unsigned int i = 0; !ret && i < n; i++)
		ret = disk_discard(t->disk, off[i], len[i]);
	if (!ret && t->write_through)
		ret = disk_flush(t->disk);
	return status_of(ret);
}

int virtio_blk_request_run(struct blk_request *r, const struct blk_target *t, enum blk_wait wait)
{
	bool now = wait == BLK_NO_WAIT;

	switch (r->type) {
	case BLK_T_IN:
	case BLK_T_OUT:
		return transfer(r, t, now);
	case BLK_T_GET_ID:
		return get_id(r, t);
	case BLK_T_FLUSH:
		r->sector = r->bytes = 0;
		return status_of(now ? disk_flush_now(t->disk) : disk_flush(t->disk));
	case BLK_T_DISCARD:
	case BLK_T_WRITE_ZEROES:
		return now ? -EAGAIN : give_up(r, t);
	default:
		return IO_UNSUPPORTED;
	}
}

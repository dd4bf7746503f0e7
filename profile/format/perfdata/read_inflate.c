/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/perfdata/read_inflate.h"

#include "profile/format/perfdata/format.h"
#include "profile/format/perfdata/read_record.h"

#include <errno.h>
#include <inttypes.h>
#include <zstd.h>

/*
 * Maximum ratio of decompressed to compressed size. Records of real profiles shrink to a tenth,
 * those of a single repeated sample to a two-hundredth; a zstd bomb exceeds this by far.
 */
#define MAX_RATIO 1024u
#define CHUNK (256u << 10)

struct inflate {
	struct perfdata *p;
	ZSTD_DStream *stream;
	struct buf part; /* decompressed bytes that are not whole records yet */
	size_t part_at;
	uint64_t limit, total;
};

/* Moves the whole records of `part` to v->flat. Returns false if they are damaged. */
static bool take_records(struct inflate *f)
{
	struct perfdata_private *v = f->p->priv;
	struct buf *part = &f->part;

	while (part->len - f->part_at >= PERFDATA_RECORD_HEADER) {
		const uint8_t *at = part->data + f->part_at;
		uint16_t size;

		memcpy(&size, at + 6, sizeof(size));
		if (size < PERFDATA_RECORD_HEADER)
			return false;
		if (size > part->len - f->part_at)
			break;
		buf_add(&v->flat, at, size);
		f->part_at += size;
	}
	if (f->part_at) {
		memmove(part->data, part->data + f->part_at, part->len - f->part_at);
		part->len -= f->part_at;
		f->part_at = 0;
	}
	return true;
}

/* Decompresses one record. Returns NULL on success, otherwise the error. */
static const char *inflate_record(struct inflate *f, const uint8_t *data, size_t len)
{
	ZSTD_inBuffer in = { data, len, 0 };
	size_t made;

	do {
		uint8_t *room = buf_reserve(&f->part, CHUNK);
		ZSTD_outBuffer out = { room, CHUNK, 0 };
		size_t ret;

		if (!room)
			return "not enough memory";
		ret = ZSTD_decompressStream(f->stream, &out, &in);
		if (ZSTD_isError(ret))
			return ZSTD_getErrorName(ret);
		made = out.pos;
		f->part.len += made;
		f->total += made;
		if (f->total > f->limit)
			return "far more than it should hold";
		if (!take_records(f))
			return "no records in it";
		/* If the output buffer is full, the decoder may hold more. */
	} while (in.pos < in.size || made == CHUNK);
	return NULL;
}

bool perfdata_is_compressed(uint32_t type)
{
	return type == PERFDATA_RECORD_COMPRESSED || type == PERFDATA_RECORD_COMPRESSED2;
}

/*
 * Returns a cursor over the contents of the compressed record c; `bad` is set if they are longer
 * than the record.
 */
static struct cursor contents_of(struct cursor c)
{
	uint32_t type = cursor_u32(&c);
	uint64_t off = PERFDATA_RECORD_HEADER, len;

	if (type == PERFDATA_RECORD_COMPRESSED)
		return cursor_window(&c, off, c.len - off);
	cursor_seek(&c, off);
	len = cursor_u64(&c);
	if (c.bad)
		len = UINT64_MAX;
	return cursor_window(&c, off + 8, len);
}

/* Decompresses the records of v->records from data_off to data_end. */
static void inflate_all(struct inflate *f)
{
	struct perfdata_private *v = f->p->priv;
	uint64_t off = v->data_off;

	while (off < v->data_end) {
		struct cursor c = perfdata_record_at(v, off), h = c;
		uint64_t extra = perfdata_record_extra(v, c);
		const char *wrong = NULL;

		if (c.bad || c.len > v->data_end - off || extra > v->data_end - off - c.len) {
			perfdata_mark_partial(f->p,
					      "damaged or cut at byte %" PRIu64 " of %" PRIu64
					      ": what comes before is shown",
					      off, v->data_end);
			return;
		}
		if (perfdata_is_compressed(cursor_u32(&h))) {
			struct cursor in = contents_of(c);

			wrong = in.bad ? "longer than itself" : inflate_record(f, in.base, in.len);
		} else if (!extra) {
			buf_add(&v->flat, c.base, c.len);
		}
		if (wrong) {
			perfdata_mark_partial(f->p,
					      "bad compressed record at byte %" PRIu64
					      " (%s): what comes before is shown",
					      off, wrong);
			return;
		}
		off += c.len + extra;
	}
	if (f->part.len)
		perfdata_mark_partial(f->p, "cut: the last compressed record is not complete");
}

/* Each part is a separate stream. */
static void inflate_part(struct inflate *f, const struct cursor *part)
{
	struct perfdata_private *v = f->p->priv;

	v->records = *part;
	v->data_off = 0;
	v->data_end = part->len;
	f->part.len = f->part_at = 0;
	ZSTD_DCtx_reset(f->stream, ZSTD_reset_session_only);
	inflate_all(f);
}

int perfdata_inflate(struct perfdata *p, const char *name, struct err *e)
{
	struct perfdata_private *v = p->priv;
	struct inflate f = { .p = p, .stream = ZSTD_createDStream() };
	uint64_t len = v->data_end - v->data_off;

	for (uint32_t i = 0; i < v->nparts; i++)
		len += v->part[i].len;
	f.limit = len < PERFDATA_MAX_INFLATED / MAX_RATIO ? len * MAX_RATIO : PERFDATA_MAX_INFLATED;
	buf_init(&v->flat);
	buf_init(&f.part);
	if (f.stream)
		inflate_all(&f);
	for (uint32_t i = 0; f.stream && i < v->nparts && v->flat.len < PERFDATA_MAX_INFLATED; i++)
		inflate_part(&f, &v->part[i]);
	if (!f.stream || v->flat.failed) {
		ZSTD_freeDStream(f.stream);
		buf_deinit(&f.part);
		return err_set(e, ENOMEM, "%s: out of memory for its decompressed records", name);
	}
	if (v->flat.len >= PERFDATA_MAX_INFLATED)
		perfdata_mark_partial(p, "has more records than can be read at once");
	ZSTD_freeDStream(f.stream);
	buf_deinit(&f.part);
	cursor_init(&v->records, v->flat.data, v->flat.len);
	v->data_off = 0;
	v->data_end = v->flat.len;
	return 0;
}

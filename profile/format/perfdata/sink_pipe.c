/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/perfdata/sink_pipe.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/file.h"
#include "profile/format/perfdata/format.h"
#include "profile/format/sink/sink.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_FILE (64ull << 30)
#define NAME "standard output"

/* -- from file to pipe ------------------------------------------------------------- */

static void put_record_header(struct buf *b, uint32_t type, size_t len)
{
	buf_u32(b, type);
	buf_u16(b, 0);
	buf_u16(b, (uint16_t)(PERFDATA_RECORD_HEADER + len));
}

/* Appends an event: the attr and ids of the next attr-entry of the file. */
static void put_attr(struct buf *b, const struct cursor *file, struct cursor *entry, uint64_t size)
{
	const uint8_t *attr = cursor_bytes(entry, size - 16);
	uint64_t off = cursor_u64(entry), len = cursor_u64(entry);
	struct cursor ids = cursor_window(file, off, len);

	if (!attr || ids.bad)
		return;
	put_record_header(b, PERFDATA_RECORD_HEADER_ATTR, size - 16 + ids.len);
	buf_add(b, attr, size - 16);
	buf_add(b, ids.base, ids.len);
}

/*
 * Copies the entries of the build-id table as records. They have the same form except for the type
 * and for their size, which is not a multiple of 8; perf since 7.0 refuses that in a pipe, so the
 * name gets more zeros.
 */
static void put_build_ids(struct buf *b, struct cursor c)
{
	while (cursor_left(&c) > PERFDATA_RECORD_HEADER) {
		size_t start = b->len;
		uint16_t size, pad;

		memcpy(&size, c.base + c.pos + 6, sizeof(size));
		pad = -size & 7;
		if (size < PERFDATA_RECORD_HEADER || size > PERFDATA_RECORD_MAX - pad)
			return;
		buf_add(b, cursor_bytes(&c, size), c.bad ? 0 : size);
		if (c.bad)
			return;
		buf_add(b, NULL, pad);
		if (b->failed)
			return;
		buf_put32(b, start, PERFDATA_RECORD_HEADER_BUILD_ID);
		b->data[start + 6] = (uint8_t)(size + pad);
		b->data[start + 7] = (uint8_t)((size + pad) >> 8);
	}
}

static void put_feature(struct buf *b, unsigned int feature, struct cursor c)
{
	/*
	 * Padding counts from the blob: after build ids the pipe's own position is a multiple of 4
	 * only.
	 */
	size_t padded = (c.len + 7) & ~(size_t)7;

	if (feature == PERFDATA_FEAT_BUILD_ID) {
		put_build_ids(b, c);
		return;
	}
	if (c.len > PERFDATA_RECORD_MAX - PERFDATA_RECORD_HEADER - 16)
		return;
	put_record_header(b, PERFDATA_RECORD_HEADER_FEATURE, 8 + padded);
	buf_u64(b, feature);
	buf_add(b, c.base, c.len);
	buf_add(b, NULL, padded - c.len);
}

static void put_features(struct buf *b, const struct cursor *file, uint64_t index_off)
{
	struct cursor index = *file, head = *file;

	cursor_seek(&index, index_off);
	cursor_seek(&head, PERFDATA_HDR_FEATURES);
	for (unsigned int word = 0; word < PERFDATA_FEATURE_BITS / 64; word++) {
		uint64_t bits = cursor_u64(&head);

		for (unsigned int bit = 0; bit < 64; bit++) {
			uint64_t off, len;
			struct cursor c;

			if (!(bits >> bit & 1))
				continue;
			off = cursor_u64(&index);
			len = cursor_u64(&index);
			c = cursor_window(file, off, len);
			if (!c.bad)
				put_feature(b, word * 64 + bit, c);
		}
	}
}

int perfdata_write_pipe(int fd, const char *name, const uint8_t *file, size_t len, struct err *e)
{
	struct cursor f, c, entry, data;
	uint64_t entry_size, attrs, attrs_len, data_off, data_len;
	struct buf b;
	int ret;

	cursor_init(&f, file, len);
	c = f;
	cursor_skip(&c, 16);
	entry_size = cursor_u64(&c);
	attrs = cursor_u64(&c);
	attrs_len = cursor_u64(&c);
	data_off = cursor_u64(&c);
	data_len = cursor_u64(&c);
	entry = cursor_window(&f, attrs, attrs_len);
	data = cursor_window(&f, data_off, data_len);
	if (c.bad || entry.bad || data.bad || entry_size < 16 || !attrs_len ||
	    attrs_len % entry_size)
		return err_set(e, EINVAL, "%s: the profile was not finished", name);
	buf_init(&b);
	buf_add(&b, PERFDATA_MAGIC, 8);
	buf_u64(&b, PERFDATA_PIPE_HEADER_SIZE);
	while (cursor_left(&entry))
		put_attr(&b, &f, &entry, entry_size);
	put_features(&b, &f, data_off + data_len);
	ret = b.failed ? -ENOMEM : file_write_all(fd, b.data, b.len);
	buf_deinit(&b);
	ret = ret ? ret : file_write_all(fd, data.base, data.len);
	return ret ? err_set(e, -ret, "%s: cannot write: %s", name, strerror(-ret)) : 0;
}

/* -- the sink ---------------------------------------------------------------------- */

struct sink_pipe {
	struct sink_forward forward; /* forwards to the file */
	int fd;
	char *dir, *path;			/* the temporary file and its directory */
	const struct sink_publisher *publisher; /* removes dir; NULL: the sink removes it */
};

static struct sink_pipe *self(struct sink *s)
{
	return (struct sink_pipe *)s;
}

static void remove_dir(struct sink_pipe *p)
{
	if (p->publisher)
		(void)p->publisher->remove(p->publisher->ctx, NULL);
	else
		file_remove_tree(p->dir, NULL);
}

static int op_end(struct sink *s, const struct profile_totals *totals, struct err *e)
{
	struct sink_pipe *p = self(s);
	struct file_map m = { 0 };
	int end = sink_forward_end(s, totals, e), ret;

	/* Send what the file could store, even after a failed end(). */
	ret = end && access(p->path, F_OK) < 0 ? end : file_map_open(&m, p->path, MAX_FILE, e);
	if (ret)
		return ret;
	ret = perfdata_write_pipe(p->fd, NAME, m.data, m.len, e);
	file_map_close(&m);
	return end ? end : ret;
}

static int op_abandon(struct sink *s, enum sink_leftover rest, struct err *e)
{
	struct sink_pipe *p = self(s);
	struct file_map m = { 0 };
	int ret = sink_forward_abandon(s, rest, e);

	if (!ret && rest == SINK_KEEP) {
		ret = file_map_open(&m, p->path, MAX_FILE, e);
		ret = ret ? ret : perfdata_write_pipe(p->fd, NAME, m.data, m.len, e);
		file_map_close(&m);
	}
	remove_dir(p);
	return ret;
}

static void op_destroy(struct sink *s)
{
	struct sink_pipe *p = self(s);

	if (!p)
		return;
	sink_forward_destroy(&p->forward);
	if (p->path)
		remove_dir(p);
	free(p->path);
	free(p->dir);
	free(p);
}

static const struct sink_ops pipe_ops = {
	.begin = sink_forward_begin,
	.kernel = sink_forward_kernel,
	.fork = sink_forward_fork,
	.exit = sink_forward_exit,
	.comm = sink_forward_comm,
	.module = sink_forward_module,
	.map = sink_forward_map,
	.dso = sink_forward_dso,
	.sample = sink_forward_sample,
	.marker = sink_forward_marker,
	.lost = sink_forward_lost,
	.flush = sink_forward_flush,
	.end = op_end,
	.copy = sink_forward_copy,
	.abandon = op_abandon,
	.destroy = op_destroy,
};

static int sink_pipe_prepare(struct sink_pipe *p, const struct sink_perfdata_options *opt,
			     struct err *e)
{
	struct sink_perfdata_options file = *opt;
	const char *tmp = getenv("TMPDIR");

	if (asprintf(&p->dir, "%s/kvmprof.XXXXXX", tmp && *tmp ? tmp : "/tmp") < 0) {
		p->dir = NULL;
		return err_nomem(e);
	}
	if (!mkdtemp(p->dir))
		return err_set(e, errno, "%s: cannot create: %s", p->dir, strerror(errno));
	/* From here on the sink's destroy operation removes the directory. */
	if (asprintf(&p->path, "%s/perf.data", p->dir) < 0) {
		p->path = NULL;
		return err_nomem(e);
	}
	if (opt->publisher) {
		int ret = opt->publisher->add(opt->publisher->ctx, p->dir, NULL, false, e);

		if (ret)
			return ret;
		p->publisher = opt->publisher;
	}
	file.path = p->path;
	file.publisher = NULL; /* in its own directory the sink can rename by itself */
	file.single_file = true;
	file.passed_on = true;
	return perfdata_sink_create(&p->forward.to, &file, e);
}

int sink_pipe_create(struct sink **out, int fd, const struct sink_perfdata_options *opt,
		     struct err *e)
{
	struct sink_pipe *p = calloc(1, sizeof(*p));
	int ret;

	if (!p)
		return err_nomem(e);
	p->forward.sink.ops = &pipe_ops;
	p->fd = fd;
	ret = sink_pipe_prepare(p, opt, e);
	if (ret) {
		op_destroy(&p->forward.sink);
		return ret;
	}
	*out = &p->forward.sink;
	return 0;
}

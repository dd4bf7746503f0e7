/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sink of all formats, and JSON strings.
 */
#include "profile/analyse/export/export.h"

#include "base/file.h"
#include "base/json.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define CHUNK (256u << 10)

static void fail(struct export_out *o, int ret)
{
	if (!o->ret)
		o->ret = ret;
}

void export_out_init(struct export_out *o, int fd, enum export_packing packing)
{
	const bool gzip = packing == EXPORT_GZIPPED;
	z_stream *z = gzip ? calloc(1, sizeof(*z)) : NULL;

	*o = (struct export_out){ .fd = fd, .gzip = z };
	buf_init(&o->buf);
	/* 16: a gzip header around it (zlib.h, deflateInit2). */
	if (gzip && (!z || deflateInit2(z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + 16, 8,
					Z_DEFAULT_STRATEGY) != Z_OK)) {
		free(z);
		o->gzip = NULL;
		fail(o, -ENOMEM);
	}
}

static void write_fd(struct export_out *o, const void *data, size_t len)
{
	int ret = o->ret ? 0 : file_write_all(o->fd, data, len);

	if (ret)
		fail(o, ret);
}

static void write_gzip(struct export_out *o, bool last)
{
	z_stream *z = o->gzip;
	uint8_t chunk[16384];

	z->next_in = o->buf.data;
	z->avail_in = (unsigned int)o->buf.len; /* little more than CHUNK, see out_mem() */
	do {
		z->next_out = chunk;
		z->avail_out = sizeof(chunk);
		if (deflate(z, last ? Z_FINISH : Z_NO_FLUSH) == Z_STREAM_ERROR) {
			fail(o, -EIO);
			return;
		}
		write_fd(o, chunk, sizeof(chunk) - z->avail_out);
	} while (!z->avail_out);
}

static void push(struct export_out *o, bool last)
{
	if (o->buf.failed)
		fail(o, -ENOMEM);
	o->written += o->buf.len;
	if (!o->ret && o->gzip)
		write_gzip(o, last);
	else if (!o->ret)
		write_fd(o, o->buf.data, o->buf.len);
	o->buf.len = 0;
}

int export_out_finish(struct export_out *o, const char *path, struct err *e)
{
	push(o, true);
	if (!o->ret)
		return 0;
	return err_set(e, -o->ret, "cannot write %s: %s", path, strerror(-o->ret));
}

void export_out_deinit(struct export_out *o)
{
	if (o->gzip)
		deflateEnd(o->gzip);
	free(o->gzip);
	o->gzip = NULL;
	buf_deinit(&o->buf);
}

void out_mem(struct export_out *o, const void *data, size_t len)
{
	const uint8_t *p = data;

	while (len) {
		size_t n = len < CHUNK ? len : CHUNK;

		buf_add(&o->buf, p, n);
		p += n;
		len -= n;
		if (o->buf.len >= CHUNK)
			push(o, false);
	}
}

void out_text(struct export_out *o, const char *text)
{
	out_mem(o, text, strlen(text));
}

void out_char(struct export_out *o, char c)
{
	out_mem(o, &c, 1);
}

void out_fixed(struct export_out *o, uint64_t v, unsigned int digits)
{
	char text[24], *p = text + sizeof(text);

	for (unsigned int i = 0; v || i <= digits; i++) {
		if (digits && i == digits)
			*--p = '.';
		*--p = (char)('0' + v % 10);
		v /= 10;
	}
	out_mem(o, p, (size_t)(text + sizeof(text) - p));
}

void out_u64(struct export_out *o, uint64_t v)
{
	out_fixed(o, v, 0);
}

void out_hex(struct export_out *o, uint64_t v)
{
	char text[16], *p = text + sizeof(text);

	do {
		*--p = "0123456789abcdef"[v & 15];
		v >>= 4;
	} while (v);
	out_mem(o, p, (size_t)(text + sizeof(text) - p));
}

void out_printf(struct export_out *o, const char *fmt, ...)
{
	char *text = NULL;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n < 0) {
		fail(o, -ENOMEM);
		return;
	}
	out_mem(o, text, (size_t)n);
	free(text);
}

void out_json(struct export_out *o, const char *text)
{
	/* Written with what follows. */
	json_quote(&o->buf, text);
}

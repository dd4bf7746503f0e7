/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sink of all formats, and JSON strings.
 */
#include "profile/export/export.h"

#include "base/file.h"

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

void export_out_init(struct export_out *o, int fd, bool gzip)
{
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

/* Length of the UTF-8 sequence at p (RFC 3629, section 4), or 0 when it is none. */
static size_t utf8_len(const unsigned char *p)
{
	unsigned int lo = 0x80, hi = 0xbf;
	size_t n;

	if (p[0] < 0x80)
		return 1;
	if (p[0] >= 0xc2 && p[0] <= 0xdf) {
		n = 2;
	} else if (p[0] >= 0xe0 && p[0] <= 0xef) {
		n = 3;
		lo = p[0] == 0xe0 ? 0xa0 : lo;
		hi = p[0] == 0xed ? 0x9f : hi; /* no surrogates */
	} else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
		n = 4;
		lo = p[0] == 0xf0 ? 0x90 : lo;
		hi = p[0] == 0xf4 ? 0x8f : hi;
	} else {
		return 0;
	}
	/* The terminator is no such byte, so this ends at it. */
	for (size_t i = 1; i < n; i++) {
		if (p[i] < lo || p[i] > hi)
			return 0;
		lo = 0x80;
		hi = 0xbf;
	}
	return n;
}

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

char *export_utf8(const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	char *copy = malloc(strlen(text) * strlen(REPLACEMENT) + 1), *dst = copy;

	while (copy && *p) {
		size_t n = utf8_len(p);

		dst = n ? mempcpy(dst, p, n) : stpcpy(dst, REPLACEMENT);
		p += n ? n : 1;
	}
	if (copy)
		*dst = '\0';
	return copy;
}

void out_json(struct export_out *o, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;

	out_char(o, '"');
	while (*p) {
		size_t n = utf8_len(p);

		if (!n) {
			out_text(o, REPLACEMENT);
			n = 1;
		} else if (*p < 0x20 || *p == 0x7f) {
			out_printf(o, "\\u%04x", *p);
		} else {
			if (*p == '"' || *p == '\\')
				out_char(o, '\\');
			out_mem(o, p, n);
		}
		p += n;
	}
	out_char(o, '"');
}

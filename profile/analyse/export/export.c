/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The output that all formats write to, and the table of the formats.
 */
#include "profile/analyse/export/export.h"

#include "base/digits.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/utf8.h"
#include "profile/analyse/export/private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define CHUNK (256u << 10)

/* -- the sink -------------------------------------------------------------------------------- */

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
	/* 16: gzip header (zlib.h, deflateInit2) */
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
	/* at most slightly more than CHUNK, see export_out_mem() */
	z->avail_in = (unsigned int)o->buf.len;
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

void export_out_mem(struct export_out *o, const void *data, size_t len)
{
	const uint8_t *p = data;

	while (len) {
		size_t n = len < CHUNK ? len : CHUNK;

		buf_add(&o->buf, p, n);
		p += n;
		len -= n;
		export_out_flush(o);
	}
}

void export_out_flush(struct export_out *o)
{
	if (o->buf.len >= CHUNK)
		push(o, false);
}

void export_out_text(struct export_out *o, const char *text)
{
	export_out_mem(o, text, strlen(text));
}

static bool is_plain(const char *text)
{
	while (*text >= 0x20 && *text < 0x7f)
		text++;
	return !*text;
}

void export_out_clean(struct export_out *o, const char *text)
{
	cleanup_free char *copy = NULL;

	if (is_plain(text)) {
		export_out_text(o, text);
		return;
	}
	copy = utf8_clean_copy(text);
	if (copy)
		export_out_text(o, copy);
	else
		fail(o, -ENOMEM);
}

void export_out_coded(struct export_out *o, char c)
{
	export_out_printf(o, "%%%02x", (unsigned char)c);
}

void export_out_char(struct export_out *o, char c)
{
	export_out_mem(o, &c, 1);
}

void export_out_u64(struct export_out *o, uint64_t v)
{
	char text[DIGITS_DEC];

	export_out_mem(o, text, digits_dec(text, v));
}

void export_out_hex(struct export_out *o, uint64_t v)
{
	char text[DIGITS_HEX];

	export_out_mem(o, text, digits_hex(text, v));
}

void export_out_printf(struct export_out *o, const char *fmt, ...)
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
	export_out_mem(o, text, (size_t)n);
	free(text);
}

/* -- the formats ----------------------------------------------------------------------------- */

static const struct export_format formats[] = {
	{ "folded", "a line for each stack, for flamegraph.pl and inferno", EXPORT_TEXT_NAMES,
	  export_folded },
	{ "perf-script", "every sample as text, as `perf script` prints it", EXPORT_SAMPLES,
	  export_perf_script },
	{ "speedscope", "JSON for speedscope.app: flame charts of vCPUs or threads",
	  EXPORT_SAMPLES | EXPORT_TEXT_NAMES, export_speedscope },
	{ "pprof", "profile.proto, gzip'ed, for pprof and what reads it",
	  EXPORT_SAMPLES | EXPORT_GZIP | EXPORT_BINARY, export_pprof },
	{ "firefox", "JSON for profiler.firefox.com: threads over time",
	  EXPORT_SAMPLES | EXPORT_TEXT_NAMES, export_firefox },
	{ "callgrind", "callgrind.out, for callgrind_annotate and KCachegrind",
	  EXPORT_TEXT_NAMES | EXPORT_CALLS, export_callgrind },
	{ "perfetto", "a trace for Perfetto: vCPUs, threads, disks, stacks on one clock",
	  EXPORT_SAMPLES | EXPORT_EVENTS | EXPORT_BINARY, export_perfetto },
	{ "kp", "stacks between '!' as stap and DTrace print them, and a summary", 0, export_kp },
	{ "lcov",
	  "which lines of a kernel ran, for genhtml: of a profile with\n"
	  "                --call-counts and the kernel's debug information",
	  EXPORT_COVERAGE, NULL },
	{ "iprof", "a directory: for each image the samples at each offset", EXPORT_DIRECTORY,
	  export_iprof },
};

const struct export_format *export_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}

const struct export_format *export_at(size_t i)
{
	return i < ARRAY_SIZE(formats) ? &formats[i] : NULL;
}

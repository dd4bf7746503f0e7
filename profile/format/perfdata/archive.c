/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/perfdata/archive.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#define BLOCK 512u
#define CHUNK (256u << 10)
#define ZSTD_LEVEL 9
#define GZIP_LEVEL 6
#define SIZE_MAX_OCTAL 077777777777ull /* 11 digits */

struct archive {
	int fd;
	enum archive_form form;
	ZSTD_CCtx *zstd;
	z_stream gzip;
	bool gzip_open;
	uint8_t in[CHUNK], out[CHUNK];
};

/* -- compressing ----------------------------------------------------------------------------- */

static int put_out(struct archive *a, size_t len, struct err *e)
{
	int ret = file_write_all(a->fd, a->out, len);

	return ret ? err_set(e, -ret, "cannot write the archive: %s", strerror(-ret)) : 0;
}

static int put_zstd(struct archive *a, const void *data, size_t len, bool last, struct err *e)
{
	ZSTD_inBuffer in = { data, len, 0 };
	size_t left;

	do {
		ZSTD_outBuffer out = { a->out, sizeof(a->out), 0 };
		int ret;

		left = ZSTD_compressStream2(a->zstd, &out, &in,
					    last ? ZSTD_e_end : ZSTD_e_continue);
		if (ZSTD_isError(left))
			return err_set(e, EIO, "zstd: %s", ZSTD_getErrorName(left));
		ret = put_out(a, out.pos, e);
		if (ret)
			return ret;
	} while (in.pos < in.size || (last && left));
	return 0;
}

static int put_gzip(struct archive *a, const void *data, size_t len, bool last, struct err *e)
{
	int status;

	a->gzip.next_in = (Bytef *)(uintptr_t)data;
	a->gzip.avail_in = (uInt)len;
	do {
		int ret;

		a->gzip.next_out = a->out;
		a->gzip.avail_out = sizeof(a->out);
		status = deflate(&a->gzip, last ? Z_FINISH : Z_NO_FLUSH);
		if (status == Z_STREAM_ERROR)
			return err_set(e, EIO, "zlib: deflate failed");
		ret = put_out(a, sizeof(a->out) - a->gzip.avail_out, e);
		if (ret)
			return ret;
	} while (a->gzip.avail_out == 0 || (last && status != Z_STREAM_END));
	return 0;
}

/* len is at most CHUNK. */
static int archive_put(struct archive *a, const void *data, size_t len, bool last, struct err *e)
{
	int ret;

	if (a->form == ARCHIVE_ZSTD)
		return put_zstd(a, data, len, last, e);
	if (a->form == ARCHIVE_GZIP)
		return put_gzip(a, data, len, last, e);
	ret = file_write_all(a->fd, data, len);
	return ret ? err_set(e, -ret, "cannot write the archive: %s", strerror(-ret)) : 0;
}

int archive_create(struct archive **out, int fd, enum archive_form form, struct err *e)
{
	struct archive *a = calloc(1, sizeof(*a));
	bool ok = a != NULL;

	if (ok) {
		a->fd = fd;
		a->form = form;
	}
	if (ok && form == ARCHIVE_ZSTD) {
		a->zstd = ZSTD_createCCtx();
		ok = a->zstd &&
		     !ZSTD_isError(ZSTD_CCtx_setParameter(a->zstd, ZSTD_c_compressionLevel,
							  ZSTD_LEVEL)) &&
		     !ZSTD_isError(ZSTD_CCtx_setParameter(a->zstd, ZSTD_c_checksumFlag, 1));
	} else if (ok && form == ARCHIVE_GZIP) {
		/* 15 + 16: the largest window, with a gzip header, which has no time then. */
		ok = deflateInit2(&a->gzip, GZIP_LEVEL, Z_DEFLATED, 15 + 16, 8,
				  Z_DEFAULT_STRATEGY) == Z_OK;
		a->gzip_open = ok;
	}
	if (!ok) {
		archive_destroy(a);
		return err_set(e, ENOMEM, "out of memory for the archive");
	}
	*out = a;
	return 0;
}

void archive_destroy(struct archive *a)
{
	if (!a)
		return;
	ZSTD_freeCCtx(a->zstd);
	if (a->gzip_open)
		deflateEnd(&a->gzip);
	free(a);
}

/* -- headers ---------------------------------------------------------------------------------- */

/* Offsets of POSIX's "ustar Header Block". */
enum {
	OFF_NAME = 0,
	OFF_MODE = 100,
	OFF_UID = 108,
	OFF_GID = 116,
	OFF_SIZE = 124,
	OFF_MTIME = 136,
	OFF_SUM = 148,
	OFF_TYPE = 156,
	OFF_MAGIC = 257,
	NAME_LEN = 100
};

static void put_octal(uint8_t *field, unsigned int digits, uint64_t v)
{
	for (unsigned int i = digits; i-- > 0; v >>= 3)
		field[i] = (uint8_t)('0' + (v & 7));
}

static int put_header(struct archive *a, const char *path, char type, uint64_t size, struct err *e)
{
	uint8_t h[BLOCK] = { 0 };
	unsigned int sum = 0;
	size_t len = strlen(path);

	memcpy(h + OFF_NAME, path, len < NAME_LEN ? len : NAME_LEN);
	put_octal(h + OFF_MODE, 7, type == '5' ? 0755 : 0644);
	put_octal(h + OFF_UID, 7, 0);
	put_octal(h + OFF_GID, 7, 0);
	put_octal(h + OFF_SIZE, 11, size <= SIZE_MAX_OCTAL ? size : 0);
	put_octal(h + OFF_MTIME, 11, 0);
	h[OFF_TYPE] = (uint8_t)type;
	memcpy(h + OFF_MAGIC, "ustar\00000", 8);
	memset(h + OFF_SUM, ' ', 8);
	for (unsigned int i = 0; i < BLOCK; i++)
		sum += h[i];
	put_octal(h + OFF_SUM, 6, sum);
	h[OFF_SUM + 6] = 0;
	return archive_put(a, h, BLOCK, false, e);
}

static int put_padding(struct archive *a, uint64_t size, struct err *e)
{
	static const uint8_t zero[BLOCK];
	size_t pad = (size_t)(-size & (BLOCK - 1));

	return pad ? archive_put(a, zero, pad, false, e) : 0;
}

/* "LEN key=value\n", where LEN counts itself. */
static size_t put_record(char *dst, size_t size, const char *key, const char *value)
{
	size_t rest = strlen(key) + strlen(value) + 3, len = rest;

	for (;;) {
		size_t with = rest + (size_t)snprintf(NULL, 0, "%zu", len);

		if (with == len)
			break;
		len = with;
	}
	return (size_t)snprintf(dst, size, "%zu %s=%s\n", len, key, value);
}

/* What the header has no room for goes into one before it. */
static int put_entry(struct archive *a, const char *path, char type, uint64_t size, struct err *e)
{
	char more[ARCHIVE_MAX_PATH + 128], number[24];
	size_t n = 0;
	int ret = 0;

	if (strlen(path) >= ARCHIVE_MAX_PATH)
		return err_set(e, ENAMETOOLONG, "%.100s...: path too long", path);
	if (strlen(path) > NAME_LEN)
		n += put_record(more, sizeof(more), "path", path);
	if (size > SIZE_MAX_OCTAL) {
		snprintf(number, sizeof(number), "%" PRIu64, size);
		n += put_record(more + n, sizeof(more) - n, "size", number);
	}
	if (n) {
		ret = put_header(a, "PaxHeaders/entry", 'x', n, e);
		ret = ret ? ret : archive_put(a, more, n, false, e);
		ret = ret ? ret : put_padding(a, n, e);
	}
	return ret ? ret : put_header(a, path, type, size, e);
}

/* -- entries ----------------------------------------------------------------------------------- */

int archive_add_dir(struct archive *a, const char *path, struct err *e)
{
	char with_slash[ARCHIVE_MAX_PATH + 2];

	snprintf(with_slash, sizeof(with_slash), "%s/", path);
	return put_entry(a, with_slash, '5', 0, e);
}

static int copy_file(struct archive *a, int fd, const char *from, uint64_t size, struct err *e)
{
	uint64_t left = size;

	while (left) {
		ssize_t n = read(fd, a->in, left < sizeof(a->in) ? (size_t)left : sizeof(a->in));
		int ret;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(e, errno, "%s: cannot read: %s", from, strerror(errno));
		if (n == 0)
			return err_set(e, EIO, "%s: became shorter while it was read", from);
		ret = archive_put(a, a->in, (size_t)n, false, e);
		if (ret)
			return ret;
		left -= (uint64_t)n;
	}
	return put_padding(a, size, e);
}

int archive_add_file(struct archive *a, const char *path, const char *from, struct err *e)
{
	cleanup_close int fd = -1;
	struct stat st;
	int ret;

	if (!from)
		return put_entry(a, path, '0', 0, e);
	fd = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, errno, "%s: cannot open: %s", from, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(e, EINVAL, "%s: not a regular file", from);
	ret = put_entry(a, path, '0', (uint64_t)st.st_size, e);
	return ret ? ret : copy_file(a, fd, from, (uint64_t)st.st_size, e);
}

int archive_end(struct archive *a, struct err *e)
{
	static const uint8_t zero[2 * BLOCK];

	return archive_put(a, zero, sizeof(zero), true, e);
}

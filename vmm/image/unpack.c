/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unpacks kernel payloads with the host's libraries.
 *
 * The build of Linux appends the size as four bytes for every method except gzip, whose format
 * ends with it. In both cases the last four bytes are only a first guess for the allocation. The
 * result grows if the guess was too small and is trimmed in the end; there is never a second copy
 * of it.
 *
 * Linux compresses with these commands (scripts/Makefile.lib): gzip -n -9; xz --check=crc32 --x86
 * --lzma2=,dict=32MiB; lzma -9; zstd -22 --ultra (window 128 MiB); lz4 -l -9 (the legacy frame);
 * bzip2 -9; lzop -9.
 */
#include "vmm/image/unpack.h"

#include "base/cursor.h"

#include <bzlib.h>
#include <errno.h>
#include <limits.h>
#include <lz4.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

/* Limit for the memory of an xz or lzma decoder: a dictionary of 256 MiB and some more. */
#define UNPACK_MAX_LZMA_MEM (272ull << 20)
/* A guess up to this ratio is accepted; no kernel compresses better than 1:20. */
#define UNPACK_GUESS_RATIO 32u
#define UNPACK_MIN_CAP (64u << 10)
/* The libraries count in unsigned int, so input and output are limited to this much at once. */
#define UNPACK_STEP (1u << 30)

#define LZ4_LEGACY_MAGIC 0x184c2102u
#define LZ4_LEGACY_BLOCK (8u << 20)

struct unpack_out {
	uint8_t *data; /* owned */
	size_t len;
	size_t cap;
	size_t max;
};

enum method { M_NONE, M_GZIP, M_XZ, M_LZMA, M_ZSTD, M_LZ4, M_LZ4_FRAME, M_BZIP2, M_LZO };

static const struct {
	enum method method;
	uint8_t len;
	char magic[8];
	const char *name;
} methods[] = {
	{ M_GZIP, 3, "\x1f\x8b\x08", "gzip" },
	{ M_XZ, 6,
	  "\xfd"
	  "7zXZ\0",
	  "xz" },
	{ M_ZSTD, 4, "\x28\xb5\x2f\xfd", "zstd" },
	{ M_LZ4, 4, "\x02\x21\x4c\x18", "lz4" },
	{ M_LZ4_FRAME, 4, "\x04\x22\x4d\x18", "lz4 frame" },
	{ M_BZIP2, 3, "BZh", "bzip2" },
	{ M_LZO, 4, "\x89LZO", "lzo" },
	/* lc=3 lp=0 pb=2 and the low bytes of the dictionary size; has no real magic */
	{ M_LZMA, 3, "\x5d\0\0", "lzma" },
};

static enum method detect(const uint8_t *src, size_t len, const char **what)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if (len >= methods[i].len && !memcmp(src, methods[i].magic, methods[i].len)) {
			*what = methods[i].name;
			return methods[i].method;
		}
	}
	*what = NULL;
	return M_NONE;
}

const char *unpack_detect(const uint8_t *src, size_t len)
{
	const char *what;

	detect(src, len, &what);
	return what;
}

/*
 * Makes cap at least len + want, or as large as max allows. realloc of large blocks moves page
 * tables, not bytes, and pages that were never written cost nothing. Returns 0, -ENOMEM, or -EFBIG
 * if not one byte more is allowed.
 */
static int out_room(struct unpack_out *o, size_t want)
{
	size_t cap = o->cap ? o->cap : UNPACK_MIN_CAP;
	uint8_t *p;

	if (o->len == o->max)
		return -EFBIG;
	if (want > o->max - o->len)
		want = o->max - o->len;
	while (cap - o->len < want)
		cap *= 2; /* cannot wrap: max is at most BOOT_MAX_KERNEL */
	if (cap > o->max)
		cap = o->max;
	if (cap <= o->cap)
		return 0;
	p = realloc(o->data, cap);
	if (!p)
		return -ENOMEM;
	o->data = p;
	o->cap = cap;
	return 0;
}

/* The unpackers return 0, -EFBIG, -ENOMEM or -EINVAL with *why set. */

static int unpack_gzip(struct unpack_out *o, const uint8_t *src, size_t len, const char **why)
{
	z_stream z = { 0 };
	int r = 0, status;

	if (inflateInit2(&z, MAX_WBITS + 16) != Z_OK)
		return -ENOMEM;
	for (;;) {
		uInt in, room;

		if (o->len == o->cap) {
			r = out_room(o, 1);
			if (r)
				break;
		}
		in = len < UNPACK_STEP ? (uInt)len : UNPACK_STEP;
		room = o->cap - o->len < UNPACK_STEP ? (uInt)(o->cap - o->len) : UNPACK_STEP;
		z.next_in = (Bytef *)src;
		z.avail_in = in;
		z.next_out = o->data + o->len;
		z.avail_out = room;
		status = inflate(&z, Z_NO_FLUSH);
		src += in - z.avail_in;
		len -= in - z.avail_in;
		o->len += room - z.avail_out;
		if (status == Z_STREAM_END)
			break;
		if (status != Z_OK && status != Z_BUF_ERROR) {
			r = status == Z_MEM_ERROR ? -ENOMEM : -EINVAL;
			*why = z.msg ? "damaged data" : "unusable data";
			break;
		}
		if (!len && z.avail_out) {
			r = -EINVAL;
			*why = "the stream is truncated";
			break;
		}
	}
	inflateEnd(&z);
	return r;
}

static int unpack_bzip2(struct unpack_out *o, const uint8_t *src, size_t len, const char **why)
{
	bz_stream z = { 0 };
	int r = 0, status;

	if (BZ2_bzDecompressInit(&z, 0, 0) != BZ_OK)
		return -ENOMEM;
	for (;;) {
		unsigned int in, room;

		if (o->len == o->cap) {
			r = out_room(o, 1);
			if (r)
				break;
		}
		in = len < UNPACK_STEP ? (unsigned int)len : UNPACK_STEP;
		room = o->cap - o->len < UNPACK_STEP ? (unsigned int)(o->cap - o->len)
						     : UNPACK_STEP;
		z.next_in = (char *)src;
		z.avail_in = in;
		z.next_out = (char *)o->data + o->len;
		z.avail_out = room;
		status = BZ2_bzDecompress(&z);
		src += in - z.avail_in;
		len -= in - z.avail_in;
		o->len += room - z.avail_out;
		if (status == BZ_STREAM_END)
			break;
		if (status != BZ_OK) {
			r = status == BZ_MEM_ERROR ? -ENOMEM : -EINVAL;
			*why = "damaged data";
			break;
		}
		if (!len && z.avail_out) {
			r = -EINVAL;
			*why = "the stream is truncated";
			break;
		}
	}
	BZ2_bzDecompressEnd(&z);
	return r;
}

static int unpack_lzma(struct unpack_out *o, const uint8_t *src, size_t len, bool xz,
		       const char **why)
{
	lzma_stream z = LZMA_STREAM_INIT;
	lzma_ret status = xz ? lzma_stream_decoder(&z, UNPACK_MAX_LZMA_MEM, 0)
			     : lzma_alone_decoder(&z, UNPACK_MAX_LZMA_MEM);
	int r = 0;

	if (status != LZMA_OK)
		return -ENOMEM;
	z.next_in = src;
	z.avail_in = len;
	for (;;) {
		if (o->len == o->cap) {
			r = out_room(o, 1);
			if (r)
				break;
		}
		z.next_out = o->data + o->len;
		z.avail_out = o->cap - o->len;
		status = lzma_code(&z, LZMA_RUN);
		o->len = o->cap - z.avail_out;
		if (status == LZMA_STREAM_END)
			break;
		if (status == LZMA_MEM_ERROR) {
			r = -ENOMEM;
			break;
		}
		if (status == LZMA_MEMLIMIT_ERROR) {
			r = -EINVAL;
			*why = "its dictionary is larger than 256 MiB";
			break;
		}
		if (status != LZMA_OK && status != LZMA_BUF_ERROR) {
			r = -EINVAL;
			*why = "damaged data";
			break;
		}
		if (!z.avail_in && z.avail_out) {
			r = -EINVAL;
			*why = "the stream is truncated";
			break;
		}
	}
	lzma_end(&z);
	return r;
}

/*
 * Decodes in one call, into memory that holds all of the result: a streaming decoder would also
 * need the window (128 MiB for a kernel). If the guess was too small, it starts again with twice
 * the size.
 */
static int unpack_zstd(struct unpack_out *o, const uint8_t *src, size_t len, const char **why)
{
	size_t frame = ZSTD_findFrameCompressedSize(src, len);
	unsigned long long known;
	ZSTD_DCtx *z;
	int r;

	if (ZSTD_isError(frame)) {
		*why = "the stream is truncated or damaged";
		return -EINVAL;
	}
	known = ZSTD_getFrameContentSize(src, frame);
	if (known != ZSTD_CONTENTSIZE_UNKNOWN && known != ZSTD_CONTENTSIZE_ERROR) {
		if (known > o->max)
			return -EFBIG;
		if (known / UNPACK_GUESS_RATIO <= frame && known) {
			r = out_room(o, known);
			if (r)
				return r;
		}
	}
	z = ZSTD_createDCtx();
	if (!z)
		return -ENOMEM;
	for (;;) {
		size_t n = ZSTD_decompressDCtx(z, o->data, o->cap, src, frame);

		if (!ZSTD_isError(n)) {
			o->len = n;
			r = 0;
			break;
		}
		if (ZSTD_getErrorCode(n) != ZSTD_error_dstSize_tooSmall) {
			r = -EINVAL;
			*why = "damaged data";
			break;
		}
		if (o->cap == o->max) {
			r = -EFBIG;
			break;
		}
		r = out_room(o, o->cap > o->max / 2 ? o->max : 2 * o->cap);
		if (r)
			break;
	}
	ZSTD_freeDCtx(z);
	return r;
}

/*
 * Unpacks a legacy frame: magic:4 (size:4 block)*, each block 8 MiB of plain data except the last.
 * There is no end mark: the frame ends where no other block can begin, either because only the four
 * bytes of the appended size are left, or after a short block.
 */
static int unpack_lz4(struct unpack_out *o, const uint8_t *src, size_t len, const char **why)
{
	struct cursor c;

	cursor_init(&c, src, len);
	cursor_skip(&c, 4);
	while (cursor_left(&c) > 4) {
		uint32_t size = cursor_u32(&c);
		const uint8_t *block;
		size_t room;
		int n, r;

		if (size == LZ4_LEGACY_MAGIC)
			continue;
		block = cursor_bytes(&c, size);
		if (!size || !block || size > INT_MAX) {
			*why = "the stream is truncated";
			return -EINVAL;
		}
		r = out_room(o, LZ4_LEGACY_BLOCK);
		if (r)
			return r;
		room = o->cap - o->len < LZ4_LEGACY_BLOCK ? o->cap - o->len : LZ4_LEGACY_BLOCK;
		n = LZ4_decompress_safe((const char *)block, (char *)o->data + o->len, (int)size,
					(int)room);
		if (n < 0) {
			/* a block that is valid but longer than max looks the same */
			*why = "damaged data";
			return room < LZ4_LEGACY_BLOCK ? -EFBIG : -EINVAL;
		}
		o->len += (size_t)n;
		if ((unsigned int)n < LZ4_LEGACY_BLOCK)
			break;
	}
	return 0;
}

int unpack_image(const char *name, struct bytes from, size_t max, uint8_t **out, size_t *out_len,
		 struct err *e)
{
	const uint8_t *src = from.data;
	const size_t len = from.len;
	struct unpack_out o = { .max = max };
	const char *what, *why = "damaged data";
	enum method method = detect(src, len, &what);
	uint32_t guess = 0;
	uint8_t *fit;
	int r;

	if (method == M_NONE)
		return err_set(e, ENOTSUP,
			       "%s: the kernel inside is compressed in an unknown format (begins "
			       "with %02x %02x %02x %02x); give the vmlinux",
			       name, len ? src[0] : 0, len > 1 ? src[1] : 0, len > 2 ? src[2] : 0,
			       len > 3 ? src[3] : 0);
	if (method == M_LZO || method == M_LZ4_FRAME)
		return err_set(
			e, ENOTSUP,
			"%s: the kernel inside is compressed with %s, which is not supported; "
			"give the vmlinux",
			name, what);

	if (len >= 4)
		memcpy(&guess, src + len - 4, 4);
	if (guess / UNPACK_GUESS_RATIO > len)
		guess = 0;
	r = out_room(&o, guess ? guess : UNPACK_MIN_CAP);
	if (!r) {
		switch (method) {
		case M_GZIP:
			r = unpack_gzip(&o, src, len, &why);
			break;
		case M_BZIP2:
			r = unpack_bzip2(&o, src, len, &why);
			break;
		case M_XZ:
			r = unpack_lzma(&o, src, len, true, &why);
			break;
		case M_LZMA:
			r = unpack_lzma(&o, src, len, false, &why);
			break;
		case M_ZSTD:
			r = unpack_zstd(&o, src, len, &why);
			break;
		default:
			r = unpack_lz4(&o, src, len, &why);
			break;
		}
	}
	if (r) {
		free(o.data);
		if (r == -ENOMEM)
			return err_set(e, ENOMEM, "%s: no memory to decompress the kernel (%s)",
				       name, what);
		if (r == -EFBIG)
			return err_set(e, EINVAL,
				       "%s: the kernel inside is longer than %zu bytes after "
				       "decompression (%s); give the vmlinux",
				       name, max, what);
		return err_set(e, EINVAL,
			       "%s: cannot decompress the kernel inside: %s (%s, %zu bytes); fetch "
			       "the file again",
			       name, why, what, len);
	}
	/* Release what was allocated too much; keep the old block if it cannot shrink. */
	fit = realloc(o.data, o.len ? o.len : 1);
	*out = fit ? fit : o.data;
	*out_len = o.len;
	return 0;
}

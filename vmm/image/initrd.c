/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/image/initrd.h"

#include "base/cursor.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <zstd.h>

#define ZSTD_PIECE (1u << 20)
/* cpio's "new ASCII" header: a magic of 6 bytes and 13 numbers of 8 hexadecimal digits. */
#define CPIO_HEADER 110u
#define CPIO_FILESIZE 54u
#define CPIO_NAMESIZE 94u
#define CPIO_LAST "TRAILER!!!"

static bool hex8(const uint8_t *s, uint64_t *out)
{
	uint64_t v = 0;

	for (unsigned int i = 0; i < 8; i++) {
		uint8_t c = s[i] | 0x20;

		if (s[i] >= '0' && s[i] <= '9')
			v = v << 4 | (uint64_t)(s[i] - '0');
		else if (c >= 'a' && c <= 'f')
			v = v << 4 | (uint64_t)(c - 'a' + 10);
		else
			return false;
	}
	*out = v;
	return true;
}

/*
 * Returns the length of the archive at the beginning of data, or 0 if it is not an archive or has
 * no end.
 */
static size_t cpio_len(const uint8_t *data, size_t len)
{
	size_t pos = 0;

	for (;;) {
		uint64_t name, file, end;
		const uint8_t *h = data + pos;
		bool last;

		if (len - pos < CPIO_HEADER || (memcmp(h, "070701", 6) && memcmp(h, "070702", 6)) ||
		    !hex8(h + CPIO_NAMESIZE, &name) || !hex8(h + CPIO_FILESIZE, &file))
			return 0;
		/*
		 * The numbers have 32 bits, so no sum wraps. Name and file are padded to multiples
		 * of 4.
		 */
		end = pos + ((CPIO_HEADER + name + 3) & ~UINT64_C(3)) + ((file + 3) & ~UINT64_C(3));
		last = name == sizeof(CPIO_LAST) && len - pos - CPIO_HEADER >= name &&
		       !memcmp(h + CPIO_HEADER, CPIO_LAST, sizeof(CPIO_LAST));
		/* The last entry need not be padded. */
		if (last && end > len && end - len < 4)
			end = len;
		if (end > len)
			return 0;
		pos = (size_t)end;
		if (last)
			return pos;
	}
}

static bool is_zstd(const uint8_t *data, size_t len)
{
	return len >= 4 && !memcmp(data, "\x28\xb5\x2f\xfd", 4);
}

/* Appends one unpacked frame. Returns 0, -EINVAL, -EFBIG or -ENOMEM. */
static int unpack_frame(const uint8_t *data, size_t len, struct buf *out)
{
	ZSTD_DStream *z = ZSTD_createDStream();
	ZSTD_inBuffer in = { .src = data, .size = len };
	size_t left = 1;
	int ret = z ? 0 : -ENOMEM;

	while (!ret && left) {
		uint8_t *p = buf_reserve(out, ZSTD_PIECE);
		ZSTD_outBuffer to = { .dst = p, .size = ZSTD_PIECE };

		if (!p) {
			ret = -ENOMEM;
			break;
		}
		left = ZSTD_decompressStream(z, &to, &in);
		out->len += to.pos;
		if (ZSTD_isError(left) || (left && !to.pos && in.pos == in.size))
			ret = -EINVAL;
		else if (out->len > INITRD_UNPACKED_MAX)
			ret = -EFBIG;
	}
	ZSTD_freeDStream(z);
	return ret;
}

int initrd_unpack(const uint8_t *data, size_t len, struct buf *out)
{
	bool any = false;
	size_t pos = 0;
	int ret = 0;

	while (pos < len && !ret) {
		size_t n;

		if (!data[pos]) {
			pos++;
			continue;
		}
		/* Each archive begins at a multiple of 4. */
		buf_align(out, 4);
		n = pos & 3 ? 0 : cpio_len(data + pos, len - pos);
		if (n) {
			buf_add(out, data + pos, n);
		} else if (is_zstd(data + pos, len - pos)) {
			n = ZSTD_findFrameCompressedSize(data + pos, len - pos);
			ret = ZSTD_isError(n) ? -EINVAL : unpack_frame(data + pos, n, out);
			any = true;
		} else {
			ret = -EINVAL;
		}
		pos += ret ? 0 : n;
		if (out->failed)
			ret = -ENOMEM;
	}
	if (ret || !any || !out->len) {
		buf_deinit(out);
		buf_init(out);
	}
	return ret == -ENOMEM ? ret : !ret && any && out->len;
}

bool initrd_is_known(const uint8_t *data, size_t len)
{
	static const struct {
		const char *bytes;
		size_t len;
	} magic[] = {
		{ "070701", 6 },	   /* cpio, newc */
		{ "070702", 6 },	   /* with checksums */
		{ "\x1f\x8b", 2 },	   /* gzip */
		{ "\x1f\x9e", 2 },	   /* gzip, old */
		{ "BZh", 3 },		   /* bzip2 */
		{ "\x5d\0\0", 3 },	   /* lzma */
		{ "\xfd\x37zXZ", 5 },	   /* xz */
		{ "\x89LZO", 4 },	   /* lzo */
		{ "\x02\x21\x4c\x18", 4 }, /* lz4, legacy frames of Linux */
		{ "\x28\xb5\x2f\xfd", 4 }, /* zstd */
		{ "hsqs", 4 },		   /* squashfs, on /dev/ram0 */
		{ "-rom1fs-", 8 },	   /* romfs, likewise */
		{ "\x45\x3d\xcd\x28", 4 }, /* cramfs, likewise */
	};
	size_t pos = 0;

	while (pos < len && !data[pos])
		pos++;
	for (size_t i = 0; i < sizeof(magic) / sizeof(magic[0]); i++)
		if (len - pos >= magic[i].len && !memcmp(data + pos, magic[i].bytes, magic[i].len))
			return true;
	/* ext2 to ext4 begin with zeros, and so does minix; their magic number is at 1080. */
	return len > 1082 && data[1080] == 0x53 && data[1081] == 0xef;
}

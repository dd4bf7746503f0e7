/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/buf.h"

#include "base/array.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST 256u /* minimum bytes allocated */

void buf_init(struct buf *b)
{
	memset(b, 0, sizeof(*b));
}

void buf_deinit(struct buf *b)
{
	free(b->data);
	buf_init(b);
}

uint8_t *buf_reserve(struct buf *b, size_t len)
{
	size_t want;

	if (!b->failed)
		b->failed = __builtin_add_overflow(b->len, len, &want) ||
			    ARRAY_FIT(b->data, want > LEAST ? want : LEAST, b->cap);
	return b->failed ? NULL : b->data + b->len;
}

void buf_add(struct buf *b, const void *src, size_t len)
{
	uint8_t *dst = len ? buf_reserve(b, len) : NULL;

	if (!dst)
		return;
	if (src)
		memcpy(dst, src, len);
	else
		memset(dst, 0, len);
	b->len += len;
}

void buf_u8(struct buf *b, uint8_t v)
{
	buf_add(b, &v, sizeof(v));
}

void buf_u16(struct buf *b, uint16_t v)
{
	buf_add(b, &v, sizeof(v));
}

void buf_u32(struct buf *b, uint32_t v)
{
	buf_add(b, &v, sizeof(v));
}

void buf_u64(struct buf *b, uint64_t v)
{
	buf_add(b, &v, sizeof(v));
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	uint8_t *dst;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0) {
		b->failed = true;
		return;
	}
	dst = buf_reserve(b, (size_t)n + 1);
	if (!dst)
		return;
	va_start(ap, fmt);
	vsnprintf((char *)dst, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
}

void buf_align(struct buf *b, size_t align)
{
	size_t rest = b->len & (align - 1);

	assert(align && !(align & (align - 1)));
	if (rest)
		buf_add(b, NULL, align - rest);
}

static void buf_put(struct buf *b, size_t off, const void *src, size_t len)
{
	if (b->failed)
		return;
	assert(off <= b->len && len <= b->len - off);
	memcpy(b->data + off, src, len);
}

void buf_put16(struct buf *b, size_t off, uint16_t v)
{
	buf_put(b, off, &v, sizeof(v));
}

void buf_put32(struct buf *b, size_t off, uint32_t v)
{
	buf_put(b, off, &v, sizeof(v));
}

void buf_put64(struct buf *b, size_t off, uint64_t v)
{
	buf_put(b, off, &v, sizeof(v));
}

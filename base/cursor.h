/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cursor: a bounded reader of bytes that come from outside.
 *
 * Every file and every guest structure is parsed through one. Reads past the
 * end return zero, set `bad` and stay there, so a parser may read a whole
 * record and check once. All integers are little endian (x86 only).
 * A cursor borrows its bytes; it never frees.
 */
#ifndef KVMPROF_BASE_CURSOR_H
#define KVMPROF_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cursor {
	const uint8_t *base;
	size_t len; /* bytes at base */
	size_t pos; /* next byte, <= len */
	bool bad;   /* a read or seek went past the end */
};

static inline void cursor_init(struct cursor *c, const void *base, size_t len)
{
	c->base = base;
	c->len = len;
	c->pos = 0;
	c->bad = false;
}

static inline size_t cursor_left(const struct cursor *c)
{
	return c->bad ? 0 : c->len - c->pos;
}

/* Move to an absolute offset; off == len is allowed (nothing left). */
static inline void cursor_seek(struct cursor *c, uint64_t off)
{
	if (off > c->len)
		c->bad = true;
	else
		c->pos = (size_t)off;
}

/* Returns n bytes and advances, or NULL when they are not all there. */
static inline const uint8_t *cursor_bytes(struct cursor *c, uint64_t n)
{
	const uint8_t *p;

	if (c->bad || n > c->len - c->pos) {
		c->bad = true;
		return NULL;
	}
	p = c->base + c->pos;
	c->pos += (size_t)n;
	return p;
}

static inline void cursor_skip(struct cursor *c, uint64_t n)
{
	(void)cursor_bytes(c, n);
}

/* Defines cursor_NAME(), which reads one thing of a type as its bytes lie; zero when short. */
#define CURSOR_READ(name, type)                                   \
	static inline type cursor_##name(struct cursor *c)        \
	{                                                         \
		const uint8_t *p = cursor_bytes(c, sizeof(type)); \
		type v;                                           \
                                                                  \
		memset(&v, 0, sizeof(v));                         \
		if (p)                                            \
			memcpy(&v, p, sizeof(v));                 \
		return v;                                         \
	}

CURSOR_READ(u8, uint8_t)
CURSOR_READ(u16, uint16_t)
CURSOR_READ(u32, uint32_t)
CURSOR_READ(u64, uint64_t)

/*
 * A window of len bytes at off of the same bytes, as a cursor of its own.
 * Out of range: the new cursor is empty and bad. The parent does not move.
 */
static inline struct cursor cursor_window(const struct cursor *c, uint64_t off, uint64_t len)
{
	struct cursor w;

	if (off > c->len || len > c->len - off) {
		cursor_init(&w, c->base, 0);
		w.bad = true;
	} else {
		cursor_init(&w, c->base + off, (size_t)len);
	}
	return w;
}

/*
 * A NUL-terminated string at absolute offset off, or NULL when it is not
 * terminated inside the bytes. Does not move the cursor.
 */
static inline const char *cursor_str_at(const struct cursor *c, uint64_t off)
{
	if (off >= c->len || !memchr(c->base + off, 0, c->len - (size_t)off))
		return NULL;
	return (const char *)c->base + off;
}

#endif

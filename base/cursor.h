/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cursor: a bounds-checked reader of bytes from outside.
 *
 * Each file and each guest structure is parsed through a cursor. A read past the end returns zero
 * and sets `bad`, which stays set, so a parser may read a whole record and check `bad` once. All
 * integers are little endian (x86 only). A cursor borrows its bytes and never frees them. Not
 * thread-safe: the caller serialises calls on one cursor.
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
	bool bad;   /* a read or a seek went past the end */
};

/* Starts a cursor at the first of len bytes. */
static inline void cursor_init(struct cursor *c, const void *base, size_t len)
{
	c->base = base;
	c->len = len;
	c->pos = 0;
	c->bad = false;
}

/* Returns the number of bytes left; 0 if the cursor is bad. */
static inline size_t cursor_left(const struct cursor *c)
{
	return c->bad ? 0 : c->len - c->pos;
}

/*
 * Moves to absolute offset off. off == len is allowed (nothing is left); a larger one sets `bad`.
 */
static inline void cursor_seek(struct cursor *c, uint64_t off)
{
	if (off > c->len)
		c->bad = true;
	else
		c->pos = (size_t)off;
}

/*
 * Returns a pointer to the next n bytes and advances past them. Returns NULL and sets `bad` if
 * fewer are left.
 */
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

/* Advances by n bytes; sets `bad` if fewer are left. */
static inline void cursor_skip(struct cursor *c, uint64_t n)
{
	(void)cursor_bytes(c, n);
}

/*
 * Defines cursor_NAME(), which reads one value of this type and advances. It returns zero and sets
 * `bad` at the end.
 */
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
 * Returns a new cursor over bytes [off, off + len) of the same data; *c does not move. If the range
 * is not all there, the new cursor is empty and bad.
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
 * Returns the NUL-terminated string at absolute offset off, or NULL if it does not end within the
 * bytes. Does not move the cursor.
 */
static inline const char *cursor_str_at(const struct cursor *c, uint64_t off)
{
	if (off >= c->len || !memchr(c->base + off, 0, c->len - (size_t)off))
		return NULL;
	return (const char *)c->base + off;
}

#endif

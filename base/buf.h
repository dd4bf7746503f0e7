/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * buf: a growable byte buffer.
 *
 * Growth doubles; a failed allocation sets `failed` and turns later appends
 * into no-ops, so a long series of appends is checked once at its end.
 */
#ifndef KVMPROF_BASE_BUF_H
#define KVMPROF_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	uint8_t *data; /* owned; NULL while empty */
	size_t len;    /* bytes in use */
	size_t cap;    /* bytes allocated */
	bool failed;   /* an append found no memory */
};

void buf_init(struct buf *b);
void buf_deinit(struct buf *b);

/* Append len bytes; src may be NULL to append zeros. */
void buf_add(struct buf *b, const void *src, size_t len);
/* Append in little-endian order. */
void buf_u8(struct buf *b, uint8_t v);
void buf_u16(struct buf *b, uint16_t v);
void buf_u32(struct buf *b, uint32_t v);
void buf_u64(struct buf *b, uint64_t v);
/* Append formatted text without its terminator. */
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Append zeros until len is a multiple of align (a power of two). */
void buf_align(struct buf *b, size_t align);
/* Overwrite 2, 4 or 8 bytes that are already there; asserts the range. */
void buf_put16(struct buf *b, size_t off, uint16_t v);
void buf_put32(struct buf *b, size_t off, uint32_t v);
void buf_put64(struct buf *b, size_t off, uint64_t v);
/* Make room for len more bytes; returns where they begin or NULL (failed). Length is not changed. */
uint8_t *buf_reserve(struct buf *b, size_t len);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * buf: a growable byte buffer.
 *
 * The capacity grows by doubling. A failed allocation sets `failed` and turns later appends into
 * no-ops, so the caller checks `failed` once after a series of appends. The functions return
 * nothing unless stated. Not thread-safe: the caller serialises calls on one buffer.
 */
#ifndef KVMPROF_BASE_BUF_H
#define KVMPROF_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	uint8_t *data; /* owned, freed by buf_deinit(); NULL while empty */
	size_t len;    /* bytes in use */
	size_t cap;    /* bytes allocated */
	bool failed;   /* an append ran out of memory, or its length overflowed */
};

/* Makes *b an empty buffer, which owns no memory. */
void buf_init(struct buf *b);
/* Frees the bytes and makes *b empty again. */
void buf_deinit(struct buf *b);

/* Appends len bytes; src NULL appends zeros. */
void buf_add(struct buf *b, const void *src, size_t len);
/* Appends an integer in little-endian order: 1 byte. */
void buf_u8(struct buf *b, uint8_t v);
/* Appends 2 bytes. */
void buf_u16(struct buf *b, uint16_t v);
/* Appends 4 bytes. */
void buf_u32(struct buf *b, uint32_t v);
/* Appends 8 bytes. */
void buf_u64(struct buf *b, uint64_t v);
/* Appends formatted text without its terminating NUL. */
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Appends zeros until len is a multiple of align (a power of two). */
void buf_align(struct buf *b, size_t align);
/* Overwrites 2 bytes at offset off, in little-endian order. They must exist already (asserted). */
void buf_put16(struct buf *b, size_t off, uint16_t v);
/* Overwrites 4 bytes like buf_put16(). */
void buf_put32(struct buf *b, size_t off, uint32_t v);
/* Overwrites 8 bytes like buf_put16(). */
void buf_put64(struct buf *b, size_t off, uint64_t v);
/*
 * Reserves room for len more bytes after the end and does not change b->len. Returns a pointer to
 * the room, valid until the next append, or NULL if the buffer has failed.
 */
uint8_t *buf_reserve(struct buf *b, size_t len);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* text_bytes: a byte array as the text that an unwinder reads. */
#ifndef KVMPROF_TESTS_TEXT_BYTES_H
#define KVMPROF_TESTS_TEXT_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct text_bytes {
	uint64_t va; /* address of bytes[0] */
	const uint8_t *bytes;
	size_t len;
};

/* Implements unwind_read_text; ctx is a struct text_bytes. Returns the bytes copied. */
static inline size_t text_bytes_read(void *ctx, uint64_t va, void *dst, size_t len)
{
	const struct text_bytes *t = ctx;
	uint64_t off = va - t->va;

	if (off >= t->len)
		return 0;
	if (len > t->len - off)
		len = (size_t)(t->len - off);
	memcpy(dst, t->bytes + off, len);
	return len;
}

#endif

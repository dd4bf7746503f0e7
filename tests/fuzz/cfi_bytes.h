/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Splits an input into the tables of a file and the stack that is unwound with them, for fuzz_cfi
 * and fuzz_sframe.
 */
#ifndef KVMPROF_TESTS_FUZZ_CFI_BYTES_H
#define KVMPROF_TESTS_FUZZ_CFI_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BASE 0x10000u

struct bytes {
	const uint8_t *at;
	size_t len;
};

static size_t read_bytes(void *ctx, uint64_t va, void *dst, size_t len)
{
	const struct bytes *b = ctx;
	uint64_t off = va - BASE;

	if (off >= b->len)
		return 0;
	if (len > b->len - off)
		len = (size_t)(b->len - off);
	memcpy(dst, b->at + off, len);
	return len;
}

static bool read_stack(void *ctx, uint64_t va, uint64_t *out)
{
	return read_bytes(ctx, va, out, 8) == 8;
}

#endif

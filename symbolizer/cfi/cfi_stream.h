/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cfi_stream: reads the bytes of a table one after another, in small blocks, up to the first byte
 * that is missing. No allocation; one thread per object.
 */
#ifndef KVMPROF_SYMBOLIZER_CFI_CFI_STREAM_H
#define KVMPROF_SYMBOLIZER_CFI_CFI_STREAM_H

#include "symbolizer/cfi/cfi_table.h"

struct cfi_stream {
	struct cfi_source src;
	uint64_t at, left; /* address of the next block, and the maximum number of bytes left */
	uint8_t buf[256];
	uint32_t n, pos;
	/* CFI_FOUND at first; CFI_BAD: beyond the end, CFI_HOLE: bytes missing. */
	enum cfi_found found;
};

/* Returns the next byte; 0 after an error, which `found` reports. */
static inline uint8_t cfi_stream_byte(struct cfi_stream *s)
{
	if (s->found != CFI_FOUND)
		return 0;
	if (s->pos == s->n) {
		size_t want = s->left < sizeof(s->buf) ? (size_t)s->left : sizeof(s->buf);

		s->n = want ? (uint32_t)s->src.read(s->src.ctx, s->at, s->buf, want) : 0;
		s->pos = 0;
		if (!s->n) {
			s->found = want ? CFI_HOLE : CFI_BAD;
			return 0;
		}
		s->at += s->n;
		s->left -= s->n;
	}
	return s->buf[s->pos++];
}

#endif

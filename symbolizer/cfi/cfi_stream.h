/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cfi_stream: bytes of a table, one after another, which are asked for some at a time.
 *
 * Up to the first that is not there. All values, no allocation; one thread.
 */
#ifndef KVMPROF_SYMBOLIZER_CFI_CFI_STREAM_H
#define KVMPROF_SYMBOLIZER_CFI_CFI_STREAM_H

#include "symbolizer/cfi/cfi_table.h"

struct cfi_stream {
	struct cfi_source src;
	uint64_t at, left; /* what is asked for next, and how much there may be */
	uint8_t buf[256];
	uint32_t n, pos;
	enum cfi_found found; /* CFI_FOUND at first; CFI_BAD: beyond the end, CFI_HOLE: not there */
};

/* 0, once `found` says why. */
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

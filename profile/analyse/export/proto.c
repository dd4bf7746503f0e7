/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/export/proto.h"

#include "base/cleanup.h"
#include "base/utf8.h"

#include <assert.h>
#include <string.h>

/* Wire types. */
enum { PROTO_VARINT = 0, PROTO_LEN = 2 };

static void proto_varint(struct buf *b, uint64_t v)
{
	for (; v > 0x7f; v >>= 7)
		buf_u8(b, (uint8_t)(v | 0x80));
	buf_u8(b, (uint8_t)v);
}

static void proto_tag(struct buf *b, unsigned int field, unsigned int type)
{
	proto_varint(b, (uint64_t)field << 3 | type);
}

void proto_uint(struct buf *b, unsigned int field, uint64_t v)
{
	proto_tag(b, field, PROTO_VARINT);
	proto_varint(b, v);
}

void proto_text(struct buf *b, unsigned int field, const char *text)
{
	cleanup_free char *clean = utf8_copy(text);

	if (!clean) {
		b->failed = true;
		return;
	}
	proto_tag(b, field, PROTO_LEN);
	proto_varint(b, strlen(clean));
	buf_add(b, clean, strlen(clean));
}

size_t proto_begin(struct buf *b, unsigned int field)
{
	proto_tag(b, field, PROTO_LEN);
	buf_u32(b, 0);
	return b->len;
}

void proto_end(struct buf *b, size_t begun)
{
	size_t len = b->len - begun;

	if (b->failed)
		return;
	if (len > PROTO_MAX_MESSAGE) {
		b->failed = true;
		return;
	}
	assert(begun >= 4);
	buf_put32(b, begun - 4,
		  (uint32_t)((len & 0x7f) | 0x80 | (len >> 7 & 0x7f) << 8 | 0x8000 |
			     (len >> 14 & 0x7f) << 16 | 0x800000 | (len >> 21) << 24));
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/sink/exittime.h"

#include "base/cursor.h"

#define EXITTIME_BYTES 12u

void exittime_put(struct buf *b, uint64_t ns, enum exittime_place place)
{
	if (place == EXITTIME_BEHIND)
		buf_u32(b, 0);
	buf_u32(b, EXITTIME_MAGIC);
	buf_u64(b, ns);
}

uint64_t exittime_parse(const uint8_t *raw, size_t len)
{
	struct cursor c;
	uint64_t ns;

	if (!raw || len < EXITTIME_BYTES)
		return 0;
	cursor_init(&c, raw + len - EXITTIME_BYTES, EXITTIME_BYTES);
	if (cursor_u32(&c) != EXITTIME_MAGIC)
		return 0;
	ns = cursor_u64(&c);
	return c.bad ? 0 : ns;
}

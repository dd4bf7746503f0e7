/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/control/reply.h"

#include <inttypes.h>
#include <string.h>

void control_reply_begin(struct buf *b, const struct control_request *r)
{
	buf_printf(b, "{\"ok\":true");
	if (r->has_id)
		buf_printf(b, ",\"id\":%" PRId64, r->id);
}

void control_reply_end(struct buf *b)
{
	buf_u8(b, '}');
}

void control_reply_error(struct buf *b, const struct control_request *r, const char *text)
{
	buf_printf(b, "{\"ok\":false");
	if (r->has_id)
		buf_printf(b, ",\"id\":%" PRId64, r->id);
	control_put_text(b, "error", text);
	control_reply_end(b);
}

void control_put_u64(struct buf *b, const char *key, uint64_t v)
{
	buf_printf(b, ",\"%s\":%" PRIu64, key, v);
}

void control_put_bool(struct buf *b, const char *key, bool v)
{
	buf_printf(b, ",\"%s\":%s", key, v ? "true" : "false");
}

void control_put_addr(struct buf *b, const char *key, uint64_t addr)
{
	buf_printf(b, ",\"%s\":\"0x%" PRIx64 "\"", key, addr);
}

void control_put_text(struct buf *b, const char *key, const char *text)
{
	buf_printf(b, ",\"%s\":", key);
	control_string(b, text);
}

void control_put_hist(struct buf *b, const char *key, const struct hist *h)
{
	buf_printf(b,
		   ",\"%s\":{\"count\":%" PRIu64 ",\"p50\":%" PRIu64 ",\"p99\":%" PRIu64
		   ",\"max\":%" PRIu64 "}",
		   key, h->count, hist_quantile(h, 500), hist_quantile(h, 990), h->max);
}

/* Bytes of the character at s; 0: not proper UTF-8 (RFC 3629, section 4). */
static unsigned int utf8_len(const unsigned char *s)
{
	unsigned char low = 0x80, high = 0xbf;
	unsigned int n = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

	if (n == 1)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	if (s[0] == 0xe0)
		low = 0xa0;
	else if (s[0] == 0xed)
		high = 0x9f;
	else if (s[0] == 0xf0)
		low = 0x90;
	else if (s[0] == 0xf4)
		high = 0x8f;
	/* The terminator is no such byte, so the end is not passed. */
	for (unsigned int i = 1; i < n; i++, low = 0x80, high = 0xbf)
		if (s[i] < low || s[i] > high)
			return 0;
	return n;
}

void control_string(struct buf *b, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	buf_u8(b, '"');
	while (*s) {
		unsigned int n = utf8_len(s);

		if (!n)
			buf_u8(b, '?');
		else if (n > 1)
			buf_add(b, s, n);
		else if (*s == '"' || *s == '\\')
			buf_printf(b, "\\%c", *s);
		else if (*s < 0x20 || *s == 0x7f)
			buf_printf(b, "\\u%04x", *s);
		else
			buf_u8(b, *s);
		s += n ? n : 1;
	}
	buf_u8(b, '"');
}

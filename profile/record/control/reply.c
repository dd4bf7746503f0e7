/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/control/reply.h"

#include "base/json.h"

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
	json_quote(b, text);
}

void control_put_hist(struct buf *b, const char *key, const struct hist *h)
{
	buf_printf(b,
		   ",\"%s\":{\"count\":%" PRIu64 ",\"p50\":%" PRIu64 ",\"p99\":%" PRIu64
		   ",\"max\":%" PRIu64 "}",
		   key, h->count, hist_quantile(h, 500), hist_quantile(h, 990), h->max);
}

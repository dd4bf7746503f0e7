/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/json.h"

#include "base/utf8.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define JSON_PIECE 7u /* \u0000 and a NUL */

/*
 * Stores the escaped form of the character at *s in piece, and advances *s. Returns its bytes
 * without the NUL.
 */
static size_t json_piece(const char **s, char piece[JSON_PIECE])
{
	const unsigned char *p = (const unsigned char *)*s;
	size_t n = utf8_len(*s);

	*s += n ? n : 1;
	if (!n)
		return (size_t)snprintf(piece, JSON_PIECE, "%s", UTF8_REPLACEMENT);
	if (n == 1 && (p[0] == '"' || p[0] == '\\'))
		return (size_t)snprintf(piece, JSON_PIECE, "\\%c", p[0]);
	if (n == 1 && (p[0] < 0x20 || p[0] == 0x7f))
		return (size_t)snprintf(piece, JSON_PIECE, "\\u%04x", p[0]);
	if (n == 2 && p[0] == 0xc2 && p[1] < 0xa0) /* U+0080 to U+009F */
		return (size_t)snprintf(piece, JSON_PIECE, "\\u%04x", p[1]);
	memcpy(piece, p, n);
	piece[n] = '\0';
	return n;
}

static void json_quote(struct buf *b, const char *s)
{
	char piece[JSON_PIECE];

	buf_u8(b, '"');
	while (*s) {
		size_t n = json_piece(&s, piece);

		buf_add(b, piece, n);
	}
	buf_u8(b, '"');
}

void json_begin(struct json_writer *w, struct buf *b)
{
	memset(w, 0, sizeof(*w));
	w->b = b;
}

void json_begin_members(struct json_writer *w, struct buf *b)
{
	json_begin(w, b);
	w->object[0] = 1;
	w->comma = b->len && b->data[b->len - 1] != '{';
}

void json_open(struct json_writer *w)
{
	json_begin(w, &w->own);
	w->object[0] = 1;
	buf_u8(w->b, '{');
}

int json_close(struct json_writer *w, FILE *f)
{
	int ret = w->b->failed ? -ENOMEM : 0;

	assert(ret || !f || (!w->depth && w->object[0]));
	if (!ret && f) {
		fwrite(w->b->data, 1, w->b->len, f);
		fputs("}\n", f);
	}
	buf_deinit(w->b);
	return ret;
}

static bool json_in_object(const struct json_writer *w)
{
	return w->object[w->depth / 8] >> w->depth % 8 & 1;
}

/* Writes all that precedes a value: comma, line break, key. */
static void json_next(struct json_writer *w, const char *key)
{
	assert(w->b->failed || json_in_object(w) == !!key);   /* a key within objects only */
	assert(w->b->failed || w->depth || key || !w->comma); /* one value, not several */
	if (w->comma)
		buf_u8(w->b, ',');
	if (w->line)
		buf_u8(w->b, '\n');
	w->comma = true;
	w->line = false;
	if (key) {
		json_quote(w->b, key);
		buf_u8(w->b, ':');
	}
}

static void json_nest(struct json_writer *w, const char *key, bool object)
{
	json_next(w, key);
	if (w->depth == JSON_DEPTH_MAX)
		w->b->failed = true;
	if (w->b->failed)
		return;
	buf_u8(w->b, object ? '{' : '[');
	w->depth++;
	w->object[w->depth / 8] &= (uint8_t) ~(1u << w->depth % 8);
	w->object[w->depth / 8] |= (uint8_t)(object << w->depth % 8);
	w->comma = false;
}

static void json_end(struct json_writer *w, bool object)
{
	if (w->b->failed)
		return;
	assert(w->depth && json_in_object(w) == object);
	if (w->line)
		buf_u8(w->b, '\n');
	buf_u8(w->b, object ? '}' : ']');
	w->depth--;
	w->line = false;
	w->comma = true;
}

void json_object_begin(struct json_writer *w, const char *key)
{
	json_nest(w, key, true);
}

void json_object_end(struct json_writer *w)
{
	json_end(w, true);
}

void json_array_begin(struct json_writer *w, const char *key)
{
	json_nest(w, key, false);
}

void json_array_end(struct json_writer *w)
{
	json_end(w, false);
}

void json_line(struct json_writer *w)
{
	w->line = true;
}

void json_raw(struct json_writer *w, const char *key, const char *text)
{
	json_next(w, key);
	if (text)
		buf_add(w->b, text, strlen(text));
	else
		w->b->failed = true;
}

void json_u64(struct json_writer *w, const char *key, uint64_t v)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, v);
	json_raw(w, key, text);
}

void json_i64(struct json_writer *w, const char *key, int64_t v)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, v);
	json_raw(w, key, text);
}

void json_hex(struct json_writer *w, const char *key, uint64_t v)
{
	char text[24];

	snprintf(text, sizeof(text), "\"0x%" PRIx64 "\"", v);
	json_raw(w, key, text);
}

void json_bool(struct json_writer *w, const char *key, bool v)
{
	json_raw(w, key, v ? "true" : "false");
}

void json_str(struct json_writer *w, const char *key, const char *s)
{
	json_next(w, key);
	if (s)
		json_quote(w->b, s);
	else
		buf_add(w->b, "null", 4);
}

void json_number(struct json_writer *w, const char *key, const char *fmt, ...)
{
	char text[512]; /* a double has at most 310 digits before its point */
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_raw(w, key, strpbrk(text, "nN") ? "null" : text);
}

void json_strf(struct json_writer *w, const char *key, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0) {
		text = NULL;
		w->b->failed = true;
	}
	va_end(ap);
	json_str(w, key, text);
	free(text);
}

static void json_member(struct json_writer *w, const char *key, const struct json_value *v)
{
	switch (v->kind) {
	case JSON_KIND_END:
		break;
	case JSON_KIND_U64:
		json_u64(w, key, v->u);
		break;
	case JSON_KIND_I64:
		json_i64(w, key, v->i);
		break;
	case JSON_KIND_BOOL:
		json_bool(w, key, v->u);
		break;
	case JSON_KIND_STR:
		json_str(w, key, v->s);
		break;
	case JSON_KIND_HEX:
		json_hex(w, key, v->u);
		break;
	case JSON_KIND_FIXED:
		json_number(w, key, "%.*f", v->digits, v->d);
		break;
	case JSON_KIND_SHORT:
		json_number(w, key, "%.*g", v->digits, v->d);
		break;
	}
}

void json_members(struct json_writer *w, const struct json_member *m)
{
	for (; m->value.kind != JSON_KIND_END; m++)
		json_member(w, m->key, &m->value);
}

void json_members_object(struct json_writer *w, const char *key, const struct json_member *m)
{
	json_object_begin(w, key);
	json_members(w, m);
	json_object_end(w);
}

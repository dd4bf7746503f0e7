/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/xml.h"

#include "base/utf8.h"

#include <string.h>

#define REPLACEMENT 0xfffdu
#define XML_LEAST_COLUMNS 5u /* minimum width for text that is cut */

/* Decodes one character; len is at least 1. Each malformed byte yields REPLACEMENT. */
static uint32_t decode(const uint8_t *s, size_t len, size_t *used)
{
	size_t n = utf8_len((const char *)s);
	uint32_t c;

	*used = 1;
	if (!n || n > len)
		return REPLACEMENT;
	if (n == 1)
		return s[0];
	c = s[0] & (0xffu >> (n + 1));
	for (size_t i = 1; i < n; i++)
		c = c << 6 | (s[i] & 0x3fu);
	*used = n;
	return c;
}

/*
 * Replaces what XML 1.0 section 2.2 (Char) forbids, and changes of direction (Unicode UAX 9: bidi
 * controls).
 */
static uint32_t harmless(uint32_t c)
{
	if (c < 0x20)
		return 0x2400 + c;
	if (c == 0x7f)
		return 0x2421;
	if ((c > 0x7f && c < 0xa0) || (c >= 0xd800 && c < 0xe000) || (c & 0xfffe) == 0xfffe ||
	    (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x2028 ||
	    c == 0x2029 || c == 0x200e || c == 0x200f || c == 0x61c || c == 0xfeff)
		return REPLACEMENT;
	return c;
}

static void put_utf8(struct buf *out, uint32_t c)
{
	if (c < 0x80) {
		buf_u8(out, (uint8_t)c);
	} else if (c < 0x800) {
		buf_u8(out, (uint8_t)(0xc0 | c >> 6));
		buf_u8(out, (uint8_t)(0x80 | (c & 0x3f)));
	} else if (c < 0x10000) {
		buf_u8(out, (uint8_t)(0xe0 | c >> 12));
		buf_u8(out, (uint8_t)(0x80 | (c >> 6 & 0x3f)));
		buf_u8(out, (uint8_t)(0x80 | (c & 0x3f)));
	} else {
		buf_u8(out, (uint8_t)(0xf0 | c >> 18));
		buf_u8(out, (uint8_t)(0x80 | (c >> 12 & 0x3f)));
		buf_u8(out, (uint8_t)(0x80 | (c >> 6 & 0x3f)));
		buf_u8(out, (uint8_t)(0x80 | (c & 0x3f)));
	}
}

static void put_xml(struct buf *out, uint32_t c)
{
	switch (c) {
	case '<':
		buf_add(out, "&lt;", 4);
		break;
	case '>':
		buf_add(out, "&gt;", 4);
		break;
	case '&':
		buf_add(out, "&amp;", 5);
		break;
	case '"':
		buf_add(out, "&quot;", 6);
		break;
	case '\'':
		buf_add(out, "&#39;", 5);
		break;
	default:
		put_utf8(out, c);
	}
}

/* Escapes quotes and everything that could end a script or a CDATA section. */
static void put_js(struct buf *out, uint32_t c)
{
	if (c == '<' || c == '>' || c == '&' || c == '"' || c == '\'' || c == '\\' || c == '`')
		buf_printf(out, "\\u%04x", c);
	else
		put_utf8(out, c);
}

static void put_text(struct buf *out, const char *s, size_t max,
		     void (*put)(struct buf *out, uint32_t c))
{
	size_t len = strnlen(s, max + 1), end = len > max ? max : len, used;

	/* Cut between two characters. */
	while (len > max && end && ((uint8_t)s[end] & 0xc0) == 0x80 && max - end < 4)
		end--;
	for (size_t i = 0; i < end; i += used)
		put(out, harmless(decode((const uint8_t *)s + i, end - i, &used)));
	if (len > max)
		buf_add(out, "...", 3);
}

void xml_quote(struct buf *out, const char *s, size_t max)
{
	put_text(out, s, max, put_xml);
}

void xml_script_string(struct buf *out, const char *s, size_t max)
{
	buf_u8(out, '"');
	put_text(out, s, max, put_js);
	buf_u8(out, '"');
}

/* Returns the number of columns that a character takes: two for East Asian ones. */
static size_t columns_of(uint32_t c)
{
	return c >= 0x1100 && c != REPLACEMENT && !(c >= 0x2000 && c < 0x2e80) ? 2 : 1;
}

void xml_fit(struct buf *out, const char *s, size_t columns)
{
	size_t len = strnlen(s, XML_FIT_MAX), total = 0, end = len, cut = 0, used;

	/* cut: the end if the text turns out to be too long, leaving room for the dots */
	for (size_t i = 0; i < len; i += used) {
		total += columns_of(harmless(decode((const uint8_t *)s + i, len - i, &used)));
		if (total + 2 <= columns)
			cut = i + used;
		if (total > columns) {
			end = cut;
			break;
		}
	}
	if (end < len && columns < XML_LEAST_COLUMNS)
		return;
	for (size_t i = 0; i < end; i += used)
		put_xml(out, harmless(decode((const uint8_t *)s + i, len - i, &used)));
	if (end < len)
		buf_add(out, "..", 2);
}

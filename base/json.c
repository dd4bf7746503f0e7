/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/json.h"

#include "base/utf8.h"

#include <string.h>

#define JSON_PIECE 7u /* \u0000 and a NUL */

/* The character at *s as it stands within a string; *s goes on. Its bytes, without the NUL. */
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

void json_quote(struct buf *b, const char *s)
{
	char piece[JSON_PIECE];

	buf_u8(b, '"');
	while (*s) {
		size_t n = json_piece(&s, piece);

		buf_add(b, piece, n);
	}
	buf_u8(b, '"');
}

void json_quote_file(FILE *f, const char *s)
{
	char piece[JSON_PIECE];

	putc('"', f);
	while (*s) {
		size_t n = json_piece(&s, piece);

		fwrite(piece, 1, n, f);
	}
	putc('"', f);
}

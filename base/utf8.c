/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/utf8.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t utf8_len(const char *s)
{
	const unsigned char *p = (const unsigned char *)s;
	unsigned char low = 0x80, high = 0xbf;
	size_t n = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

	if (n == 1)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	/* Refuse overlong forms, surrogates, and values above U+10FFFF. */
	if (p[0] == 0xe0)
		low = 0xa0;
	else if (p[0] == 0xed)
		high = 0x9f;
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	/* The terminating NUL is not a continuation byte, so the loop does not pass the end. */
	for (size_t i = 1; i < n; i++, low = 0x80, high = 0xbf)
		if (p[i] < low || p[i] > high)
			return 0;
	return n;
}

/*
 * Returns whether the character is a control character, including U+0080 to U+009F, which some
 * terminals obey.
 */
static bool is_control(const char *s)
{
	const unsigned char *p = (const unsigned char *)s;

	return p[0] < 0x20 || p[0] == 0x7f || (p[0] == 0xc2 && p[1] < 0xa0);
}

/*
 * Stores in *out and *len the bytes to show for the character at s, which is not the end. Returns
 * the number of bytes of that character.
 */
static size_t clean_one(const char *s, const char **out, size_t *len)
{
	size_t n = utf8_len(s);

	*out = !n ? UTF8_REPLACEMENT : is_control(s) ? "?" : s;
	*len = !n ? strlen(UTF8_REPLACEMENT) : *out == s ? n : 1;
	return n ? n : 1;
}

size_t utf8_clean(char *dst, size_t size, const char *src)
{
	const char *from;
	size_t at = 0, len;

	while (*src) {
		src += clean_one(src, &from, &len);
		if (at + len >= size)
			break;
		memcpy(dst + at, from, len);
		at += len;
	}
	dst[at] = '\0';
	return at;
}

void utf8_put(FILE *f, const char *s)
{
	const char *from;
	size_t len;

	while (*s) {
		size_t plain = 0;

		while (s[plain] >= 0x20 && s[plain] < 0x7f)
			plain++;
		if (plain) {
			fwrite(s, 1, plain, f);
			s += plain;
			continue;
		}
		s += clean_one(s, &from, &len);
		fwrite(from, 1, len, f);
	}
}

char *utf8_clean_copy(const char *s)
{
	size_t size = strlen(s) * strlen(UTF8_REPLACEMENT) + 1;
	char *copy = malloc(size);

	if (copy)
		utf8_clean(copy, size, s);
	return copy;
}

void utf8_put_csv(FILE *f, const char *s)
{
	bool formula = *s && strchr("=+-@\t\r", *s), quoted = formula || strpbrk(s, ",\"");
	const char *from;
	size_t len;

	if (quoted)
		putc('"', f);
	if (formula)
		putc('\'', f);
	while (*s) {
		s += clean_one(s, &from, &len);
		if (*from == '"')
			putc('"', f);
		fwrite(from, 1, len, f);
	}
	if (quoted)
		putc('"', f);
}

char *utf8_copy(const char *s)
{
	char *copy = malloc(strlen(s) * strlen(UTF8_REPLACEMENT) + 1), *dst = copy;

	while (copy && *s) {
		size_t n = utf8_len(s);

		dst = n ? mempcpy(dst, s, n) : stpcpy(dst, UTF8_REPLACEMENT);
		s += n ? n : 1;
	}
	if (copy)
		*dst = '\0';
	return copy;
}

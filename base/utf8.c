/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/utf8.h"

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
	/* No longer form of a shorter one, no surrogates, nothing above U+10FFFF. */
	if (p[0] == 0xe0)
		low = 0xa0;
	else if (p[0] == 0xed)
		high = 0x9f;
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	/* The terminator is no such byte, so the end is not passed. */
	for (size_t i = 1; i < n; i++, low = 0x80, high = 0xbf)
		if (p[i] < low || p[i] > high)
			return 0;
	return n;
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

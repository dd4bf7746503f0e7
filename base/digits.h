/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * digits: writes numbers as text, for output with a number for each sample or frame, where
 * printf(3) would take most of the time.
 *
 * No function writes a NUL or allocates memory. Any thread may call them.
 */
#ifndef KVMPROF_BASE_DIGITS_H
#define KVMPROF_BASE_DIGITS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define DIGITS_DEC 20u /* most decimal digits of a number */
#define DIGITS_HEX 16u /* most hexadecimal digits of a number */

/* Writes v in decimal to out, which has room for DIGITS_DEC bytes. Returns the number of digits. */
static inline size_t digits_dec(char *out, uint64_t v)
{
	char text[DIGITS_DEC], *p = text + sizeof(text);
	size_t n;

	do {
		*--p = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	n = (size_t)(text + sizeof(text) - p);
	memcpy(out, p, n);
	return n;
}

/*
 * Writes v in lower-case hexadecimal, without "0x", to out, which has room for DIGITS_HEX bytes.
 * Returns the number of digits.
 */
static inline size_t digits_hex(char *out, uint64_t v)
{
	const size_t n = v ? (67 - (size_t)__builtin_clzll(v)) / 4 : 1;

	for (size_t i = 0; i < n; i++)
		out[i] = "0123456789abcdef"[v >> (4 * (n - 1 - i)) & 15];
	return n;
}

/*
 * Writes v in decimal with at least `width` characters, the first of them `pad`, as printf's "%5u"
 * and "%05u" do. out has room for DIGITS_DEC bytes, or `width` if that is more. Returns the end of
 * the text.
 */
static inline char *digits_put(char *out, uint64_t v, size_t width, char pad)
{
	char text[DIGITS_DEC];
	const size_t n = digits_dec(text, v);

	for (; width > n; width--)
		*out++ = pad;
	memcpy(out, text, n);
	return out + n;
}

#endif

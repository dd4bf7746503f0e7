/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * coded: encoding of names in formats whose readers end a name at some characters.
 *
 * Such a character is written as '%' and two hexadecimal digits, and so is '%' itself: "operator+"
 * becomes "operator%2b". Other characters are unchanged, so names in C stay readable. The functions
 * are pure; any thread may call them.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_STACKS_CODED_H
#define KVMPROF_PROFILE_ANALYSE_STACKS_CODED_H

#include <stdbool.h>
#include <stddef.h>

/*
 * End of the first line of a kp text whose names are coded. Texts of other programs have plain
 * names.
 */
#define CODED_KP_MARK "(%XX in a name is the byte XX)"

/* Returns the value of a lower-case hexadecimal digit, or -1. */
static inline int coded_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/*
 * Decodes s[0..len) into dst, at most `size` bytes, without a terminator. Returns the number of
 * bytes stored. A '%' without two digits is copied.
 */
static inline size_t coded_read(char *dst, size_t size, const char *s, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len && n < size; i++) {
		bool coded = s[i] == '%' && i + 2 < len && coded_digit(s[i + 1]) >= 0 &&
			     coded_digit(s[i + 2]) >= 0;

		dst[n++] =
			coded ? (char)(coded_digit(s[i + 1]) << 4 | coded_digit(s[i + 2])) : s[i];
		i += coded ? 2 : 0;
	}
	return n;
}

#endif

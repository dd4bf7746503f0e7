/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * coded: names in formats whose readers end a name at some characters.
 *
 * Such a character is written as '%' and two hexadecimal digits, and so is '%' itself:
 * "operator+" is "operator%2b". Any other text is what it was, so names of C stay readable.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_STACKS_CODED_H
#define KVMPROF_PROFILE_ANALYSE_STACKS_CODED_H

#include <stdbool.h>
#include <stddef.h>

/* Ends the first line of a text of kp whose names are coded. Other programs' texts have names as they are. */
#define CODED_KP_MARK "(%XX in a name is the byte XX)"

static inline int coded_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Stores at most `size` bytes of the name in dst, without a terminator. Returns how many. '%' without two digits is itself. */
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

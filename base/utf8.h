/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * utf8: is this proper UTF-8? Names come from guests and files as bytes of any kind.
 */
#ifndef KVMPROF_BASE_UTF8_H
#define KVMPROF_BASE_UTF8_H

#include <stddef.h>

/* What stands for bytes that are none: U+FFFD. */
#define UTF8_REPLACEMENT "\xef\xbf\xbd"

/*
 * Bytes of the character at s, 1 to 4; 0: not proper UTF-8 (RFC 3629, section 4). s ends
 * with a NUL, which is a character of its own and never part of another.
 */
size_t utf8_len(const char *s);

/* A copy in which each byte that is none is U+FFFD; the caller's. NULL: no memory. */
char *utf8_copy(const char *s);

#endif

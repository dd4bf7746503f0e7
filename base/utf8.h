/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * utf8: text for people and programs, made of names that come from guests and files as bytes of any kind.
 */
#ifndef KVMPROF_BASE_UTF8_H
#define KVMPROF_BASE_UTF8_H

#include <stddef.h>
#include <stdio.h>

/* What stands for bytes that are none: U+FFFD. */
#define UTF8_REPLACEMENT "\xef\xbf\xbd"

/*
 * Bytes of the character at s, 1 to 4; 0: not proper UTF-8 (RFC 3629, section 4). s ends
 * with a NUL, which is a character of its own and never part of another.
 */
size_t utf8_len(const char *s);

/*
 * Copies src to dst, which has `size` bytes (at least 1), for people and programs to read: a control character becomes '?',
 * a byte that is not proper UTF-8 becomes U+FFFD. What does not fit is cut between two characters. Returns the bytes
 * written, without the NUL.
 */
size_t utf8_clean(char *dst, size_t size, const char *src);

/* Writes what utf8_clean() would store. Errors are the stream's (ferror(3)). */
void utf8_put(FILE *f, const char *s);

/* Returns a copy as utf8_clean() makes it, which the caller frees; NULL: no memory. */
char *utf8_clean_copy(const char *s);

/*
 * Writes one cell of CSV (RFC 4180), cleaned as by utf8_clean(). A spreadsheet takes text that begins with one of = + - @ for a
 * formula, which a guest may have chosen: such text gets an apostrophe in front.
 */
void utf8_put_csv(FILE *f, const char *s);

/* A copy in which each byte that is none is U+FFFD; the caller's. NULL: no memory. */
char *utf8_copy(const char *s);

#endif

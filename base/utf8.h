/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * utf8: makes text for people and programs from names that come from guests and files as arbitrary
 * bytes. Any thread may call these functions.
 */
#ifndef KVMPROF_BASE_UTF8_H
#define KVMPROF_BASE_UTF8_H

#include <stddef.h>
#include <stdio.h>

/* The replacement for invalid bytes: U+FFFD. */
#define UTF8_REPLACEMENT "\xef\xbf\xbd"

/*
 * Returns the number of bytes of the UTF-8 character at s, 1 to 4, or 0 if it is invalid (RFC 3629,
 * section 4). s is NUL-terminated; the NUL is a character of its own and never part of another.
 */
size_t utf8_len(const char *s);

/*
 * Copies src to dst, which has `size` bytes (at least 1). Control characters become '?', and bytes
 * that are not valid UTF-8 become U+FFFD. Text that does not fit is cut between two characters.
 * Returns the number of bytes written, without the NUL.
 */
size_t utf8_clean(char *dst, size_t size, const char *src);

/* Writes the text that utf8_clean() would store. The caller checks ferror(f). */
void utf8_put(FILE *f, const char *s);

/*
 * Returns a copy as utf8_clean() makes it, or NULL if out of memory. The caller frees it with
 * free().
 */
char *utf8_clean_copy(const char *s);

/*
 * Writes one cell of CSV (RFC 4180), cleaned as by utf8_clean(). A spreadsheet interprets text that
 * begins with one of = + - @, a tab or a carriage return as a formula, which a guest may have
 * chosen: such text gets an apostrophe in front. The caller checks ferror(f).
 */
void utf8_put_csv(FILE *f, const char *s);

/*
 * Returns a copy in which each invalid byte is replaced by U+FFFD and control characters are kept,
 * or NULL if out of memory. The caller frees it with free().
 */
char *utf8_copy(const char *s);

#endif

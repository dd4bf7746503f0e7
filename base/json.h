/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * json: strings in JSON that is written piece by piece (RFC 8259, section 7).
 *
 * The text may be any bytes. Proper UTF-8 goes through as it is; each byte that is not part
 * of any becomes U+FFFD. Quote, backslash and control characters (U+0000 to U+001F, U+007F
 * to U+009F) are escaped, so that a terminal shows a line of it unharmed. Any thread.
 */
#ifndef KVMPROF_BASE_JSON_H
#define KVMPROF_BASE_JSON_H

#include "base/buf.h"

#include <stdio.h>

/* Append the string with its quotes. */
void json_quote(struct buf *b, const char *s);
/* The same to a file, whose errors are ferror()'s. */
void json_quote_file(FILE *f, const char *s);

#endif

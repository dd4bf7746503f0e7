/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * xml: writes text for XML and HTML (XML 1.0, section 2) from arbitrary bytes.
 *
 * Characters that a document may not hold are replaced: control characters by their pictures
 * (U+2400...); invalid UTF-8, characters that XML forbids, and characters that change the direction
 * of writing by U+FFFD. At most max bytes of s (xml_fit(): XML_FIT_MAX) are read. Output is
 * appended to `out`, whose `failed` the caller checks. Any thread may call these functions.
 */
#ifndef KVMPROF_BASE_XML_H
#define KVMPROF_BASE_XML_H

#include "base/buf.h"

#define XML_FIT_MAX 4096u

/*
 * Writes text and attribute values in double quotes (without the quotes). Text longer than max
 * bytes ends with "...".
 */
void xml_quote(struct buf *out, const char *s, size_t max);
/*
 * Writes a string literal of JavaScript, with its quotes, that is safe inside a script element.
 * Longer text is cut in the same way.
 */
void xml_script_string(struct buf *out, const char *s, size_t max);
/*
 * Writes as much text as fits in this many columns, with ".." if it is cut. Writes nothing if there
 * are fewer than 5 columns and the text does not fit.
 */
void xml_fit(struct buf *out, const char *s, size_t columns);

#endif

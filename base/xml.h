/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * xml: text in XML and HTML (XML 1.0, section 2), from bytes of any kind.
 *
 * Bytes that no document may hold become others: control characters their pictures
 * (U+2400...), what is no UTF-8, no character of XML or turns the direction of writing U+FFFD.
 * At most max bytes of s, or XML_FIT_MAX, are looked at. Any thread.
 */
#ifndef KVMPROF_BASE_XML_H
#define KVMPROF_BASE_XML_H

#include "base/buf.h"

#define XML_FIT_MAX 4096u

/* For text and for attributes in double quotes; what is cut ends with "...". */
void xml_quote(struct buf *out, const char *s, size_t max);
/* A string literal of JavaScript that may stand in a script; cut likewise. */
void xml_script_string(struct buf *out, const char *s, size_t max);
/* As much text as fits in that many columns; nothing when it would say nothing. */
void xml_fit(struct buf *out, const char *s, size_t columns);

#endif

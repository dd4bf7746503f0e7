/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * proto: fields of protobuf's wire format (protobuf.dev, "Encoding"), appended to a buffer.
 *
 * A message within another is opened and closed; its length has four bytes, of which the
 * first may say nothing, as the format allows. Without memory the buffer says `failed`.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_EXPORT_PROTO_H
#define KVMPROF_PROFILE_ANALYSE_EXPORT_PROTO_H

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

#define PROTO_MAX_MESSAGE ((1u << 28) - 1) /* bytes of a message that was opened */

/* Integers, enums and booleans; a negative int32 or int64 as int64_t. */
void proto_uint(struct buf *b, unsigned int field, uint64_t v);
/* A string; what is no UTF-8 becomes U+FFFD. */
void proto_text(struct buf *b, unsigned int field, const char *text);
/* Returns what proto_end() is given. They nest. */
size_t proto_begin(struct buf *b, unsigned int field);
void proto_end(struct buf *b, size_t begun);

#endif

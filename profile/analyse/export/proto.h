/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * proto: appends fields in protobuf's wire format (protobuf.dev, "Encoding") to a buffer.
 *
 * A message within another is opened and closed; its length is written in four bytes, of which the
 * upper ones may be empty, as the format allows. If memory runs out, the buffer's `failed` is set.
 * Not thread-safe: the caller serialises calls on one buffer.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_EXPORT_PROTO_H
#define KVMPROF_PROFILE_ANALYSE_EXPORT_PROTO_H

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

/* maximum bytes of a message between proto_begin() and proto_end() */
#define PROTO_MAX_MESSAGE ((1u << 28) - 1)

/* Appends an integer, enum or boolean; a negative int32 or int64 is passed as int64_t. */
void proto_uint(struct buf *b, unsigned int field, uint64_t v);
/* Appends a string; bytes that are not valid UTF-8 become U+FFFD. */
void proto_text(struct buf *b, unsigned int field, const char *text);
/* Begins a nested message and returns the mark for proto_end(), which ends it. */
size_t proto_begin(struct buf *b, unsigned int field);
void proto_end(struct buf *b, size_t begun);

#endif

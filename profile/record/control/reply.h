/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * control_reply: replies of the control socket, as text. Form: docs/control.md.
 *
 * A reply is begun, gets its members, each with a comma in front, and is ended. Whether
 * memory sufficed is in buf.failed. Any thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_CONTROL_REPLY_H
#define KVMPROF_PROFILE_RECORD_CONTROL_REPLY_H

#include "base/buf.h"
#include "base/hist.h"
#include "profile/record/control/request.h"

/* {"ok":true,"id":ID */
void control_reply_begin(struct buf *b, const struct control_request *r);
/* The closing brace; no line feed. */
void control_reply_end(struct buf *b);
/* A whole reply that says no. r may be one that could not be parsed. */
void control_reply_error(struct buf *b, const struct control_request *r, const char *text);

void control_put_u64(struct buf *b, const char *key, uint64_t v);
void control_put_bool(struct buf *b, const char *key, bool v);
void control_put_addr(struct buf *b, const char *key, uint64_t addr);
void control_put_text(struct buf *b, const char *key, const char *text);
/* count, p50, p99 and max, in ns */
void control_put_hist(struct buf *b, const char *key, const struct hist *h);

#endif

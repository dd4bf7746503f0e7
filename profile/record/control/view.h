/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sink_live: what a live view of the run asks for, gathered on the way to another sink.
 *
 * All calls go on to the other sink. While somebody asks (LIVE_ASKED_NS) samples are also
 * counted by task, mode, vCPU, event and stack of named functions; else a sample costs
 * nothing here, and the memory is given back. Caps: LIVE_MAX_* here.
 * What fails here costs the view, not the profile.
 *
 * One thread: the pipeline's consumer, for all functions. Form of replies: docs/control.md.
 */
#ifndef KVMPROF_PROFILE_RECORD_CONTROL_VIEW_H
#define KVMPROF_PROFILE_RECORD_CONTROL_VIEW_H

#include "base/buf.h"
#include "profile/format/sink/sink.h"

#define LIVE_ASKED_NS (15 * UINT64_C(1000000000))
#define LIVE_MAX_FUNCS 65536u
#define LIVE_MAX_THREADS (1u << 18)
#define LIVE_MAX_STACKS 16384u
#define LIVE_MAX_FRAMES (1u << 20)		 /* of all stacks */
#define LIVE_MAX_DEPTH 127u			 /* frames of one stack that are looked at */
#define LIVE_MARKS 16u				 /* replies that `since` may name */
#define LIVE_FULL_NS (30 * UINT64_C(1000000000)) /* then a full table begins anew */

struct live_query {
	uint64_t since;			/* 0: from the beginning */
	uint32_t max_stacks, max_depth; /* 0: the defaults */
	uint64_t now_ns;
};

/* Takes `to` over, also when it fails. */
int view_sink_create(struct sink **out, struct sink *to, struct err *e);

/* Appends the members of a reply to `profile`, which has others already. */
void view_sink_profile(struct sink *s, const struct live_query *q, struct buf *reply);
/* Appends those of a reply to `text`; len 0: the function at addr. */
int view_sink_text(struct sink *s, uint64_t addr, uint32_t len, struct buf *reply, struct err *e);

#endif

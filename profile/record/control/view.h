/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sink_live: gathers what a live view of the run requests, on the way to another sink.
 *
 * All calls are forwarded to the other sink. While requests come (LIVE_ASKED_NS) samples are also
 * counted by task, mode, vCPU, event and stack of named functions; otherwise a sample costs nothing
 * here, and the memory is freed. The sizes are limited by LIVE_MAX_*. A failure here affects the
 * view but not the profile.
 *
 * All functions are called by the consumer thread; the main thread creates the sink, and destroys
 * it with its destroy(). Format of replies: docs/control.md.
 */
#ifndef KVMPROF_PROFILE_RECORD_CONTROL_VIEW_H
#define KVMPROF_PROFILE_RECORD_CONTROL_VIEW_H

#include "base/buf.h"
#include "profile/format/sink/sink.h"

/* How long samples are counted after a request, in ns. */
#define LIVE_ASKED_NS (15 * UINT64_C(1000000000))
#define LIVE_MAX_FUNCS 65536u
#define LIVE_MAX_THREADS (1u << 18)
#define LIVE_MAX_STACKS 16384u
#define LIVE_MAX_FRAMES (1u << 20)		 /* in all stacks */
#define LIVE_MAX_DEPTH 127u			 /* frames of a stack that are used */
#define LIVE_MARKS 16u				 /* earlier replies to which `since` may refer */
#define LIVE_FULL_NS (30 * UINT64_C(1000000000)) /* a full table is cleared after this time */

struct live_query {
	uint64_t since;			/* number of an earlier reply; 0: from the beginning */
	uint32_t max_stacks, max_depth; /* 0: the defaults */
	/* CLOCK_MONOTONIC */
	uint64_t now_ns;
};

/* Creates the sink, which owns `to` from then on, even if this fails. Returns 0 or -ENOMEM. */
int view_sink_create(struct sink **out, struct sink *to, struct err *e);

/*
 * Appends the members of a reply to `profile` to *reply, which has others already. s is from
 * view_sink_create(). A lack of memory sets reply->failed.
 */
void view_sink_profile(struct sink *s, const struct live_query *q, struct buf *reply);
/*
 * Appends those of a reply to `text`; len 0: the whole function at addr. Returns 0, -EAGAIN if the
 * kernel's address is not known yet, -EINVAL, -ENOENT, -EFAULT if nothing is mapped there, or
 * -ENOMEM; *e has the reason.
 */
int view_sink_text(struct sink *s, uint64_t addr, uint32_t len, struct buf *reply, struct err *e);

#endif

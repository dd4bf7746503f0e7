/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * control_server: the control socket's thread: clients, lines, replies, time limits.
 *
 * Knows no run: what a request does is the owner's, who is called on the server's thread
 * and must not wait there. What takes long is begun there and ended by another thread
 * with control_server_done(); meanwhile other clients are served, and requests of that
 * kind wait their turn.
 *
 * No client can make the server wait: all sockets are non-blocking, what is not read or
 * not ended in time is cut off, and everything that is kept for a client has a cap.
 */
#ifndef KVMPROF_PROFILE_RECORD_CONTROL_SERVER_H
#define KVMPROF_PROFILE_RECORD_CONTROL_SERVER_H

#include "base/buf.h"
#include "base/err.h"
#include "profile/record/control/path.h"
#include "profile/record/control/request.h"

#define CONTROL_MAX_CLIENTS 8u
#define CONTROL_MAX_REPLY (16u << 20)

/* How long is waited for what; ns. All 0: the defaults of docs/control.md. */
struct control_limits {
	uint64_t line_ns, write_ns, idle_ns;
};

struct control_ops {
	/*
	 * Answer r into reply: a line without its end. False: it is answered later, see
	 * control_server_done(); none of its kind comes before that.
	 */
	bool (*request)(void *ctx, const struct control_request *r, struct buf *reply);
	/* Does request() answer such a request later? */
	bool (*is_later)(enum control_cmd cmd);
	/* After control_server_done(): the answer. */
	void (*later)(void *ctx, struct buf *reply);
	/* About once a second. */
	void (*tick)(void *ctx);
};

struct control_server;

/*
 * Starts the thread, with all signals blocked. l stays the caller's and must outlive it,
 * as ops and ctx must. limits may be NULL.
 */
int control_server_start(struct control_server **out, const struct control_listener *l,
			 const struct control_ops *ops, void *ctx,
			 const struct control_limits *limits, struct err *e);

/* What request() left for later is done. Any thread, once for each; does not wait. */
void control_server_done(struct control_server *s);

/*
 * No more requests; waits for one that is under way, gives clients a moment to take
 * their replies, and ends the thread. NULL is fine. Not on the server's thread.
 */
void control_server_stop(struct control_server *s);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * control_server: the thread of the control socket: clients, lines, replies, time limits.
 *
 * The server knows nothing about a run: the owner's callbacks carry out requests. They run on the
 * server's thread and must not block. A request that takes long is begun there and completed by
 * another thread with control_server_done(); meanwhile other clients are served, and requests of
 * that kind wait in a queue.
 *
 * No client can block the server: all sockets are non-blocking, a client that does not read or does
 * not complete a line in time is disconnected, and everything that is stored for a client has a
 * maximum.
 */
#ifndef KVMPROF_PROFILE_RECORD_CONTROL_SERVER_H
#define KVMPROF_PROFILE_RECORD_CONTROL_SERVER_H

#include "base/buf.h"
#include "base/err.h"
#include "profile/record/control/path.h"
#include "profile/record/control/request.h"

#define CONTROL_MAX_CLIENTS 8u
#define CONTROL_MAX_REPLY (16u << 20)

/*
 * Time limits in ns for a line, for writing a reply, and for an idle client. All 0: the defaults of
 * docs/control.md.
 */
struct control_limits {
	uint64_t line_ns, write_ns, idle_ns;
};

/* The owner's callbacks; all run on the server's thread. */
struct control_ops {
	/*
	 * Writes the reply to r into *reply: a line without its line feed. Returns false if the
	 * reply comes later, see control_server_done(); until then there is no other request of
	 * that kind.
	 */
	bool (*request)(void *ctx, const struct control_request *r, struct buf *reply);
	/* Returns whether request() replies later to such a request. */
	bool (*is_later)(enum control_cmd cmd);
	/* Writes the reply, after control_server_done(). */
	void (*later)(void *ctx, struct buf *reply);
	/* Called about once a second. */
	void (*tick)(void *ctx);
};

struct control_server;

/*
 * Starts the thread, with all signals blocked. l, ops and ctx must outlive it. limits may be NULL.
 * *out is set before the thread starts. Returns 0 or -errno with the reason in *e. The caller ends
 * it with control_server_stop().
 */
int control_server_start(struct control_server **out, const struct control_listener *l,
			 const struct control_ops *ops, void *ctx,
			 const struct control_limits *limits, struct err *e);

/*
 * Reports that the request that was left for later is complete. Any thread, once for each such
 * request; it does not block, and the caller must not use s afterwards.
 */
void control_server_done(struct control_server *s);

/*
 * Accepts no more requests, waits for one that is under way, gives clients half a second to read
 * their replies, ends the thread and frees s. NULL is allowed. Not to be called by the server's
 * thread.
 */
void control_server_stop(struct control_server *s);

#endif

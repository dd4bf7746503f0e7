/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/control/server.h"

#include "base/clock.h"
#include "base/thread.h"
#include "profile/record/control/request.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define TICK_MS 1000
/* How long clients may still read when the run ends. */
#define FLUSH_NS (500 * 1000000ull)
/* A process without a free descriptor cannot accept a client; it must not spin either. */
#define ACCEPT_PAUSE_NS NSEC_PER_SEC
/* Values that are added to the counter of event_fd; there is only one stop. */
#define WAKE_STOP 1u
#define WAKE_DONE 2u

struct client {
	int fd;			       /* -1: unused */
	char in[CONTROL_MAX_LINE + 1]; /* the longest line and its line feed */
	size_t in_len;
	struct buf out;
	size_t out_off;
	uint64_t last_ns;  /* time of the last request, or of the connection */
	uint64_t line_ns;  /* start of the current line; 0: there is none */
	uint64_t write_ns; /* since when nothing could be written; 0: nothing is pending */
	bool waits;	   /* its request is answered later */
	bool has_request;  /* `request` is parsed, and is in the queue */
	bool closing;	   /* close it when `out` is written */
	bool eof;	   /* it sends nothing more, but may still read */
	struct control_request request;
};

struct control_server {
	const struct control_listener *listener;
	const struct control_ops *ops;
	void *ctx;
	struct control_limits limits;
	pthread_t thread;
	int event_fd; /* wakes the thread: a request is complete, or it has to stop */
	atomic_bool stop;
	bool busy;		 /* a request is being answered later */
	struct client *busy_for; /* NULL: the client has disconnected */
	uint64_t accept_after_ns, tick_ns;
	struct client client[CONTROL_MAX_CLIENTS];
};

static void close_client(struct control_server *s, struct client *c)
{
	close(c->fd);
	c->fd = -1;
	if (s->busy_for == c)
		s->busy_for = NULL;
	buf_deinit(&c->out);
}

/* -- writing -------------------------------------------------------------------------- */

static void write_out(struct control_server *s, struct client *c, uint64_t now)
{
	while (c->out_off < c->out.len) {
		ssize_t n = send(c->fd, c->out.data + c->out_off, c->out.len - c->out_off,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n > 0) {
			c->out_off += (size_t)n;
			c->write_ns = now;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			c->write_ns = c->write_ns ? c->write_ns : now;
			return;
		}
		close_client(s, c);
		return;
	}
	/* The memory of a long reply is freed. */
	buf_deinit(&c->out);
	buf_init(&c->out);
	c->out_off = 0;
	c->write_ns = 0;
	if (c->closing)
		close_client(s, c);
}

/* Completes the reply that is in c->out from `start` on. */
static void finish_reply(struct control_server *s, struct client *c, size_t start,
			 const struct control_request *r, uint64_t now)
{
	if (!c->out.failed && c->out.len - start > CONTROL_MAX_REPLY) {
		c->out.len = start;
		control_reply_error(&c->out, r,
				    "the reply would be too long: ask for fewer stacks");
	}
	buf_u8(&c->out, '\n');
	if (c->out.failed) {
		close_client(s, c);
		return;
	}
	write_out(s, c, now);
}

static void reply_error(struct control_server *s, struct client *c, const struct control_request *r,
			const char *text, uint64_t now)
{
	size_t start = c->out.len;

	control_reply_error(&c->out, r, text);
	finish_reply(s, c, start, r, now);
}

/* -- requests ------------------------------------------------------------------------- */

static void server_serve(struct control_server *s, struct client *c, uint64_t now)
{
	const struct control_request *r = &c->request;
	size_t start = c->out.len;

	if (s->ops->is_later(r->cmd)) {
		if (s->busy)
			return;
		c->has_request = false;
		if (!s->ops->request(s->ctx, r, &c->out)) {
			s->busy = c->waits = true;
			s->busy_for = c;
			return;
		}
	} else {
		c->has_request = false;
		s->ops->request(s->ctx, r, &c->out);
	}
	finish_reply(s, c, start, r, now);
}

static void take_line(struct control_server *s, struct client *c, size_t len, uint64_t now)
{
	struct err e = { 0 };

	c->last_ns = now;
	if (len && c->in[len - 1] == '\r')
		len--;
	if (control_request_parse(&c->request, c->in, len, &e) < 0) {
		reply_error(s, c, &c->request, e.text, now);
		return;
	}
	c->has_request = true;
	server_serve(s, c, now);
}

static bool is_free(const struct client *c)
{
	return c->fd >= 0 && !c->waits && !c->has_request && !c->closing &&
	       c->out_off == c->out.len;
}

/* Handles the complete requests in the buffer in sequence, until one has to wait. */
static void take_lines(struct control_server *s, struct client *c, uint64_t now)
{
	while (is_free(c)) {
		char *nl = memchr(c->in, '\n', c->in_len);
		size_t len = nl ? (size_t)(nl - c->in) : 0;

		if (!nl)
			break;
		take_line(s, c, len, now);
		c->in_len -= len + 1;
		memmove(c->in, c->in + len + 1, c->in_len);
	}
	if (!is_free(c))
		return;
	if (c->in_len > CONTROL_MAX_LINE) {
		const struct control_request none = { 0 };

		c->closing = true;
		reply_error(s, c, &none, "the request is too long; see docs/control.md", now);
	} else if (c->eof) {
		close_client(s, c);
	} else {
		c->line_ns = !c->in_len ? 0 : c->line_ns ? c->line_ns : now;
	}
}

static void read_in(struct control_server *s, struct client *c, uint64_t now)
{
	ssize_t n = recv(c->fd, c->in + c->in_len, sizeof(c->in) - c->in_len, MSG_DONTWAIT);

	if (n < 0) {
		if (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK)
			close_client(s, c);
		return;
	}
	if (!n)
		c->eof = true;
	c->in_len += (size_t)n;
	take_lines(s, c, now);
}

/* -- clients -------------------------------------------------------------------------- */

static bool is_allowed(const struct control_listener *l, int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	       (peer.uid == 0 || peer.uid == l->uid);
}

/* Sends one line if the socket accepts it; nothing is stored for such a client. */
static void server_refuse(int fd, const char *why)
{
	const struct control_request none = { 0 };
	struct buf b;

	buf_init(&b);
	control_reply_error(&b, &none, why);
	buf_u8(&b, '\n');
	if (!b.failed)
		(void)!send(fd, b.data, b.len, MSG_NOSIGNAL | MSG_DONTWAIT);
	buf_deinit(&b);
	close(fd);
}

static void take_client(struct control_server *s, uint64_t now)
{
	int fd = accept4(s->listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			s->accept_after_ns = now + ACCEPT_PAUSE_NS;
		return;
	}
	if (!is_allowed(s->listener, fd)) {
		server_refuse(fd, "only the user who started the run, and root, may control it");
		return;
	}
	for (unsigned int i = 0; i < CONTROL_MAX_CLIENTS; i++) {
		struct client *c = &s->client[i];

		if (c->fd >= 0)
			continue;
		memset(c, 0, sizeof(*c));
		c->fd = fd;
		c->last_ns = now;
		buf_init(&c->out);
		return;
	}
	server_refuse(fd, "too many clients at a time");
}

static bool is_over(uint64_t now, uint64_t since, uint64_t limit)
{
	return since && now > since && now - since > limit;
}

static void check_limits(struct control_server *s, struct client *c, uint64_t now)
{
	if (c->waits || c->has_request)
		return;
	if (is_over(now, c->write_ns, s->limits.write_ns) ||
	    is_over(now, c->line_ns, s->limits.line_ns) ||
	    is_over(now, c->last_ns, s->limits.idle_ns))
		close_client(s, c);
}

/* -- the thread ----------------------------------------------------------------------- */

static void take_done(struct control_server *s, uint64_t now)
{
	struct client *c = s->busy_for;
	uint64_t count;

	if (read(s->event_fd, &count, sizeof(count)) != sizeof(count) || count < WAKE_DONE)
		return;
	s->busy = false;
	s->busy_for = NULL;
	if (c) {
		size_t start = c->out.len;

		c->waits = false;
		c->last_ns = now;
		s->ops->later(s->ctx, &c->out);
		finish_reply(s, c, start, &c->request, now);
	} else {
		struct buf nobody;

		buf_init(&nobody);
		s->ops->later(s->ctx, &nobody);
		buf_deinit(&nobody);
	}
}

static short wanted(const struct client *c)
{
	if (c->out_off < c->out.len)
		return POLLOUT;
	/* For a waiting client only a hang-up matters, which poll(2) always reports. */
	return c->waits || c->has_request || c->eof ? 0 : POLLIN;
}

static void look_at_client(struct control_server *s, struct client *c, short revents, uint64_t now)
{
	if (revents & POLLOUT)
		write_out(s, c, now);
	else if (revents & POLLIN)
		read_in(s, c, now);
	else if (revents & (POLLHUP | POLLERR | POLLNVAL))
		close_client(s, c);
	/* A request that a reply, or another client's request, has delayed. */
	if (c->fd >= 0 && c->has_request)
		server_serve(s, c, now);
	if (c->fd >= 0)
		take_lines(s, c, now);
	if (c->fd >= 0)
		check_limits(s, c, now);
}

static void one_turn(struct control_server *s)
{
	struct pollfd fds[2 + CONTROL_MAX_CLIENTS];
	bool may_accept = clock_mono_ns() >= s->accept_after_ns;
	uint64_t now;

	fds[0] = (struct pollfd){ .fd = s->event_fd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = may_accept ? s->listener->fd : -1, .events = POLLIN };
	for (unsigned int i = 0; i < CONTROL_MAX_CLIENTS; i++)
		fds[2 + i] =
			(struct pollfd){ .fd = s->client[i].fd, .events = wanted(&s->client[i]) };
	if (poll(fds, 2 + CONTROL_MAX_CLIENTS, TICK_MS / 4) < 0)
		memset(fds, 0, sizeof(fds));
	now = clock_mono_ns();
	if (fds[0].revents)
		take_done(s, now);
	for (unsigned int i = 0; i < CONTROL_MAX_CLIENTS; i++)
		if (fds[2 + i].fd >= 0 && s->client[i].fd == fds[2 + i].fd)
			look_at_client(s, &s->client[i], fds[2 + i].revents, now);
	/*
	 * After the clients: a new one must not be confused with a closed one whose descriptor
	 * number it got.
	 */
	if (fds[1].revents & POLLIN)
		take_client(s, now);
	if (now - s->tick_ns >= TICK_MS * 1000000ull) {
		s->tick_ns = now;
		s->ops->tick(s->ctx);
	}
}

/* The request that is under way completes; after that clients have a moment to read. */
static void server_finish(struct control_server *s)
{
	uint64_t end = 0;
	bool left = true;

	for (unsigned int i = 0; i < CONTROL_MAX_CLIENTS; i++)
		if (s->client[i].fd >= 0 && s->client[i].has_request)
			close_client(s, &s->client[i]);
	while (s->busy || (left && (!end || clock_mono_ns() < end))) {
		struct pollfd fd = { .fd = s->event_fd, .events = POLLIN };
		uint64_t now;

		poll(&fd, 1, 10);
		now = clock_mono_ns();
		if (fd.revents)
			take_done(s, now);
		if (!s->busy && !end)
			end = now + FLUSH_NS;
		left = false;
		for (unsigned int i = 0; i < CONTROL_MAX_CLIENTS; i++) {
			struct client *c = &s->client[i];

			if (c->fd >= 0 && c->out_off < c->out.len)
				write_out(s, c, now);
			left |= c->fd >= 0 && c->out_off < c->out.len;
		}
	}
	for (unsigned int i = 0; i < CONTROL_MAX_CLIENTS; i++)
		if (s->client[i].fd >= 0)
			close_client(s, &s->client[i]);
}

static void *server_main(void *arg)
{
	struct control_server *s = arg;

	while (!atomic_load(&s->stop))
		one_turn(s);
	server_finish(s);
	return NULL;
}

/* Cannot fail: the counter never comes near its maximum. */
static void server_wake(struct control_server *s, uint64_t why)
{
	(void)!write(s->event_fd, &why, sizeof(why));
}

void control_server_done(struct control_server *s)
{
	/* After the write the thread may end and free s, so nothing may follow. */
	server_wake(s, WAKE_DONE);
}

int control_server_start(struct control_server **out, const struct control_listener *l,
			 const struct control_ops *ops, void *ctx,
			 const struct control_limits *limits, struct err *e)
{
	static const struct control_limits usual = { 10 * NSEC_PER_SEC, 10 * NSEC_PER_SEC,
						     600 * NSEC_PER_SEC };
	struct control_server *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return err_nomem(e);
	s->listener = l;
	s->ops = ops;
	s->ctx = ctx;
	s->limits = limits ? *limits : usual;
	for (unsigned int i = 0; i < CONTROL_MAX_CLIENTS; i++)
		s->client[i].fd = -1;
	json_object_seed(0); /* reads /dev/urandom, which the thread cannot open */
	s->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->event_fd < 0) {
		ret = err_set(e, errno, "eventfd: %s", strerror(errno));
		free(s);
		return ret;
	}
	/* Before the thread runs: its callbacks may use *out from other threads. */
	*out = s;
	ret = thread_start(&s->thread, THREAD_CONTROL, server_main, s);
	if (ret) {
		*out = NULL;
		close(s->event_fd);
		free(s);
		return err_set(e, ret, "cannot start the control thread: %s", strerror(ret));
	}
	return 0;
}

void control_server_stop(struct control_server *s)
{
	if (!s)
		return;
	atomic_store(&s->stop, true);
	server_wake(s, WAKE_STOP);
	pthread_join(s->thread, NULL);
	close(s->event_fd);
	free(s);
}

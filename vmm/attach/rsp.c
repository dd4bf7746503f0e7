/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/rsp.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ESCAPE 0x7d
#define ESCAPE_XOR 0x20
#define REPEAT '*'
#define REPEAT_LESS 29
#define BREAK 0x03
#define READ_CHUNK 16384u
#define MAX_UNASKED 8 /* packets that are skipped while a reply is awaited */

void rsp_init(struct rsp *r)
{
	r->fd = -1;
	r->timeout_ms = RSP_TIMEOUT_MS;
	r->all_limit_ns = r->hurried_ns = 0;
	atomic_init(&r->hurry_ms, 0);
	r->chunk = 0;
	r->window = 1;
	r->at = 0;
	buf_init(&r->in);
	buf_init(&r->data);
}

void rsp_deinit(struct rsp *r)
{
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
	buf_deinit(&r->in);
	buf_deinit(&r->data);
}

/* -- packets --------------------------------------------------------------------------- */

static int hex_digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int unescape(struct buf *out, const uint8_t *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		uint8_t c = data[i];

		if (c == REPEAT) {
			int n = ++i < len ? data[i] - REPEAT_LESS : 0;

			if (n < 1 || !out->len || out->failed ||
			    out->len + (size_t)n > RSP_MAX_PACKET)
				return -EPROTO;
			c = out->data[out->len - 1];
			while (n-- > 0)
				buf_u8(out, c);
			continue;
		}
		if (c == ESCAPE) {
			if (++i == len)
				return -EPROTO;
			c = data[i] ^ ESCAPE_XOR;
		}
		buf_u8(out, c);
	}
	return out->failed ? -ENOMEM : 0;
}

long rsp_parse(struct buf *out, const uint8_t *bytes, size_t len)
{
	const uint8_t *end;
	uint8_t sum = 0;
	size_t n;
	int ret;

	out->len = 0;
	if (!len)
		return 0;
	if (bytes[0] != '$')
		return -EPROTO;
	end = memchr(bytes, '#', len);
	if (!end)
		return len > RSP_MAX_PACKET ? -EPROTO : 0;
	n = (size_t)(end - bytes);
	if (len - n < 3)
		return 0;
	for (size_t i = 1; i < n; i++)
		sum = (uint8_t)(sum + bytes[i]);
	if (hex_digit(end[1]) < 0 || hex_digit(end[2]) < 0 ||
	    sum != (hex_digit(end[1]) << 4 | hex_digit(end[2])))
		return -EPROTO;
	ret = unescape(out, bytes + 1, n - 1);
	return ret ? ret : (long)n + 3;
}

/* Returns whether the stub may be waited for any longer. Called before each poll. */
static bool rsp_may_wait(struct rsp *r, struct patience *p)
{
	unsigned int hurry_ms = atomic_load(&r->hurry_ms);
	uint64_t now = clock_mono_ns();

	if (!patience_is_left(p, now, r->timeout_ms * UINT64_C(1000000)) ||
	    (r->all_limit_ns && !patience_is_left(&r->all, now, r->all_limit_ns)))
		return false;
	return !hurry_ms || r->hurried_ns + p->spent_ns < hurry_ms * UINT64_C(1000000);
}

/* Adds a wait, successful or not, to the time that hurry_ms limits. Returns ret. */
static int rsp_waited(struct rsp *r, const struct patience *p, int ret)
{
	if (atomic_load(&r->hurry_ms))
		r->hurried_ns += p->spent_ns;
	return ret;
}

static int rsp_no_answer(struct err *e)
{
	return err_set(e, ETIMEDOUT,
		       "the gdbstub does not answer: is another debugger connected to it?");
}

/* Sends all bytes. A stub that does not read is waited for as long as one that does not answer. */
static int send_all(struct rsp *r, const void *data, size_t len, struct err *e)
{
	struct patience left = { 0 };
	const uint8_t *p = data;

	while (len) {
		ssize_t n = send(r->fd, p, len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EAGAIN) {
			struct pollfd wait = { .fd = r->fd, .events = POLLOUT };

			if (!rsp_may_wait(r, &left))
				return rsp_waited(r, &left, rsp_no_answer(e));
			(void)poll(&wait, 1, PATIENCE_LOOK_NS / 1000000);
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(e, errno, "the gdbstub has gone: %s", strerror(errno));
		p += n;
		len -= (size_t)n;
	}
	return rsp_waited(r, &left, 0);
}

/* Receives the bytes that arrive within a short time. Returns 0 also if there are none. */
static int rsp_receive(struct rsp *r, struct err *e)
{
	struct pollfd p = { .fd = r->fd, .events = POLLIN };
	uint8_t *room;
	ssize_t n;

	if (poll(&p, 1, PATIENCE_LOOK_NS / 1000000) <= 0)
		return 0;
	if (r->at) {
		memmove(r->in.data, r->in.data + r->at, r->in.len - r->at);
		r->in.len -= r->at;
		r->at = 0;
	}
	room = buf_reserve(&r->in, READ_CHUNK);
	if (!room)
		return err_nomem(e);
	n = recv(r->fd, room, READ_CHUNK, MSG_DONTWAIT);
	if (n == 0)
		return err_set(e, EPIPE, "the gdbstub has closed the connection");
	if (n < 0 && errno != EINTR && errno != EAGAIN)
		return err_set(e, errno, "the gdbstub has gone: %s", strerror(errno));
	if (n > 0)
		r->in.len += (size_t)n;
	return 0;
}

/* Skips to the next packet. Returns the number of bytes before it: acknowledgements and garbage. */
static size_t rsp_skip(struct rsp *r)
{
	size_t before = r->at;

	while (r->at < r->in.len && r->in.data[r->at] != '$')
		r->at++;
	return r->at - before;
}

static int await_packet(struct rsp *r, struct patience *left, struct err *e)
{
	size_t garbage = 0;
	int ret = 0;

	while (!ret) {
		garbage += rsp_skip(r);
		if (garbage > RSP_GARBAGE)
			return err_set(e, EPROTO, "the gdbstub sends what is no packet");
		if (r->at < r->in.len) {
			long n = rsp_parse(&r->data, r->in.data + r->at, r->in.len - r->at);

			if (n < 0)
				return err_set(e, (int)-n, "the gdbstub sends what is no packet");
			if (n > 0) {
				r->at += (size_t)n;
				buf_u8(&r->data, 0);
				if (r->data.failed)
					return err_nomem(e);
				r->data.len--;
				return send_all(r, "+", 1, e);
			}
		}
		ret = rsp_may_wait(r, left) ? rsp_receive(r, e) : rsp_no_answer(e);
	}
	return ret;
}

static int get_packet(struct rsp *r, struct err *e)
{
	struct patience left = { 0 };
	int ret = await_packet(r, &left, e);

	return rsp_waited(r, &left, ret);
}

int rsp_send(struct rsp *r, const char *command, struct err *e)
{
	struct buf b;
	uint8_t sum = 0;
	int ret;

	for (const char *c = command; *c; c++)
		sum = (uint8_t)(sum + (uint8_t)*c);
	buf_init(&b);
	buf_printf(&b, "$%s#%02x", command, sum);
	ret = b.failed ? err_nomem(e) : send_all(r, b.data, b.len, e);
	buf_deinit(&b);
	return ret;
}

/*
 * Returns whether the reply is a stop: "T05...", "S05". 'T' is the first letter of other replies,
 * too.
 */
static bool is_stop(const struct rsp *r)
{
	return r->data.len >= 3 && (r->data.data[0] == 'T' || r->data.data[0] == 'S') &&
	       hex_digit(r->data.data[1]) >= 0 && hex_digit(r->data.data[2]) >= 0;
}

static bool is_end(const struct rsp *r)
{
	return r->data.len >= 3 && (r->data.data[0] == 'W' || r->data.data[0] == 'X') &&
	       hex_digit(r->data.data[1]) >= 0 && hex_digit(r->data.data[2]) >= 0;
}

int rsp_reply(struct rsp *r, struct err *e)
{
	for (int i = 0; i < MAX_UNASKED; i++) {
		int ret = get_packet(r, e);

		if (ret)
			return ret;
		if (is_end(r))
			return err_set(e, EPIPE, "the machine has ended");
		if (!is_stop(r))
			return 0;
	}
	return err_set(e, EPROTO, "the gdbstub answers with nothing but stops");
}

int rsp_request(struct rsp *r, const char *command, struct err *e)
{
	int ret = rsp_send(r, command, e);

	return ret ? ret : rsp_reply(r, e);
}

int rsp_poll(struct rsp *r, struct err *e)
{
	struct pollfd p = { .fd = r->fd, .events = POLLIN };
	size_t garbage = 0;
	unsigned int packets = 0;

	while (poll(&p, 1, 0) > 0) {
		int ret = rsp_receive(r, e);

		if (ret)
			return ret;
		garbage += rsp_skip(r);
		if (garbage > RSP_GARBAGE || packets > MAX_UNASKED)
			return err_set(e, EPROTO, "the gdbstub sends what nobody has asked for");
		if (r->at == r->in.len)
			continue;
		packets++;
		ret = get_packet(r, e);
		if (ret)
			return ret;
		if (is_end(r))
			return err_set(e, EPIPE, "the machine has ended");
		if (is_stop(r))
			return 1;
	}
	return 0;
}

int rsp_break(struct rsp *r, struct err *e)
{
	const uint8_t byte = BREAK;
	int ret = send_all(r, &byte, 1, e);

	for (int i = 0; !ret && i < MAX_UNASKED; i++) {
		ret = get_packet(r, e);
		if (!ret && is_stop(r))
			return 0;
		if (!ret && is_end(r))
			return err_set(e, EPIPE, "the machine has ended");
	}
	return ret ? ret : err_set(e, EPROTO, "the gdbstub does not stop");
}

bool rsp_is_refusal(const struct rsp *r)
{
	return !r->data.len || (r->data.data[0] == 'E' && r->data.len == 3);
}

/* -- the connection ---------------------------------------------------------------------- */

static int rsp_split(const char *where, char *host, size_t size, const char **port, struct err *e)
{
	const char *colon = strrchr(where, ':');
	size_t len = colon ? (size_t)(colon - where) : 0;

	if (!colon || !colon[1] || len >= size)
		return err_set(e, EINVAL, "%s: expected HOST:PORT", where);
	*port = colon + 1;
	/* The brackets are not part of an IPv6 address. */
	if (len > 2 && where[0] == '[' && where[len - 1] == ']') {
		where++;
		len -= 2;
	}
	memcpy(host, where, len);
	host[len] = '\0';
	return 0;
}

/*
 * Waits until the socket is connected, at most RSP_CONNECT_MS, because firewalls may drop packets
 * silently. Returns 0 or a positive errno value.
 */
static int rsp_wait_connected(int fd)
{
	struct patience left = { 0 };
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int cause = 0;

	while (poll(&p, 1, PATIENCE_LOOK_NS / 1000000) <= 0)
		if (!patience_is_left(&left, clock_mono_ns(), RSP_CONNECT_MS * UINT64_C(1000000)))
			return ETIMEDOUT;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &cause, &len) < 0 ? errno : cause;
}

int rsp_connect(struct rsp *r, const char *where, struct err *e)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *list;
	char host[256];
	const char *port = NULL;
	int one = 1, ret = rsp_split(where, host, sizeof(host), &port, e), cause = 0;

	if (ret)
		return ret;
	ret = getaddrinfo(*host ? host : "localhost", port, &hints, &list);
	if (ret)
		return err_set(e, EHOSTUNREACH, "%s: %s", where, gai_strerror(ret));
	for (const struct addrinfo *a = list; a && r->fd < 0; a = a->ai_next) {
		r->fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
			       a->ai_protocol);
		if (r->fd < 0) {
			cause = cause ? cause : errno;
			continue;
		}
		if (connect(r->fd, a->ai_addr, a->ai_addrlen) == 0)
			continue;
		cause = errno == EINPROGRESS ? rsp_wait_connected(r->fd) : errno;
		if (!cause)
			continue;
		close(r->fd);
		r->fd = -1;
	}
	freeaddrinfo(list);
	if (r->fd < 0)
		return err_set(e, cause ? cause : EHOSTUNREACH, "%s: cannot connect: %s", where,
			       strerror(cause));
	setsockopt(r->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return 0;
}

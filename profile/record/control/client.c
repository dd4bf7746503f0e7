/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/control/client.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/signals.h"
#include "profile/record/control/path.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define READ_CHUNK 65536u

struct control_client {
	int fd;
	struct buf in; /* received bytes of replies */
};

int control_client_open(struct control_client **out, const char *path, struct err *e)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	struct control_client *c;
	char only[CONTROL_PATH_MAX];

	if (!strcmp(path, CONTROL_PATH_AUTO)) {
		int ret = control_path_only(only, e);

		if (ret)
			return ret;
		path = only;
	}
	if (strlen(path) >= sizeof(sa.sun_path))
		return err_set(e, ENAMETOOLONG,
			       "%s: too long for a socket's path, which has %zu bytes at most",
			       path, sizeof(sa.sun_path) - 1);
	strcpy(sa.sun_path, path);
	c = calloc(1, sizeof(*c));
	if (!c)
		return err_nomem(e);
	buf_init(&c->in);
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd >= 0)
		control_limit_waits(c->fd);
	if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
		int cause = errno;

		control_client_close(c);
		return control_connect_failed(path, cause, e);
	}
	*out = c;
	return 0;
}

void control_client_close(struct control_client *c)
{
	if (!c)
		return;
	if (c->fd >= 0)
		close(c->fd);
	buf_deinit(&c->in);
	free(c);
}

static int send_line(struct control_client *c, json_t *request, struct err *e)
{
	char *text = json_dumps(request, JSON_COMPACT);
	size_t len = text ? strlen(text) : 0, sent = 0;
	int ret = text ? 0 : err_nomem(e);

	if (text)
		text[len++] = '\n'; /* in place of the terminator */
	while (!ret && sent < len) {
		ssize_t n = send(c->fd, text + sent, len - sent, MSG_NOSIGNAL);

		if (n >= 0)
			sent += (size_t)n;
		else if (errno == EAGAIN)
			ret = err_set(e, ETIMEDOUT, "the run does not read requests");
		else if (errno != EINTR)
			ret = err_set(e, errno, "the run has ended: %s", strerror(errno));
		else if (signals_pending())
			ret = err_set(e, EINTR, "interrupted");
	}
	free(text);
	return ret;
}

/* Receives more of a reply, before the deadline. */
static int client_receive(struct control_client *c, uint64_t deadline_ns, struct err *e)
{
	struct pollfd p[2] = { { .fd = c->fd, .events = POLLIN },
			       { .fd = signals_fd(), .events = POLLIN } };
	uint64_t now = clock_mono_ns();
	uint8_t *room;
	ssize_t n;

	if (now >= deadline_ns)
		return err_set(e, ETIMEDOUT, "the run does not answer");
	if (poll(p, 2, (int)((deadline_ns - now) / 1000000) + 1) <= 0)
		return 0;
	if (signals_pending())
		return err_set(e, EINTR, "interrupted");
	if (!p[0].revents)
		return 0;
	room = buf_reserve(&c->in, READ_CHUNK);
	if (!room)
		return err_nomem(e);
	n = recv(c->fd, room, READ_CHUNK, 0);
	if (n > 0)
		c->in.len += (size_t)n;
	else if (n == 0)
		return err_set(e, EPIPE, "the run has ended");
	else if (errno != EINTR)
		return err_set(e, errno, "the run has ended: %s", strerror(errno));
	if (c->in.len > CONTROL_CLIENT_MAX_REPLY)
		return err_set(e, EMSGSIZE, "a reply of more than %u MiB",
			       CONTROL_CLIENT_MAX_REPLY >> 20);
	return 0;
}

static int take_line(struct control_client *c, json_t **reply, struct err *e)
{
	uint64_t deadline = clock_mono_ns() + CONTROL_CLIENT_TIMEOUT_MS * 1000000ull;
	size_t looked = 0;
	json_error_t why;
	int ret = 0;

	c->in.len = 0; /* the server sends only replies */
	for (;;) {
		const uint8_t *end = looked < c->in.len
					     ? memchr(c->in.data + looked, '\n', c->in.len - looked)
					     : NULL;

		if (end) {
			*reply = json_loadb((const char *)c->in.data, (size_t)(end - c->in.data), 0,
					    &why);
			return *reply ? 0
				      : err_set(e, EPROTO, "a reply that is not JSON: %s",
						why.text);
		}
		looked = c->in.len;
		ret = client_receive(c, deadline, e);
		if (ret)
			return ret;
	}
}

int control_client_request(struct control_client *c, json_t *request, json_t **reply, struct err *e)
{
	json_t *got = NULL;
	int ret = request ? send_line(c, request, e) : err_nomem(e);

	json_decref(request);
	ret = ret ? ret : take_line(c, &got, e);
	if (!ret && !json_is_true(json_object_get(got, "ok"))) {
		const char *why = json_string_value(json_object_get(got, "error"));

		ret = err_set(e, EINVAL, "%s", why ? why : "the run refused without a reason");
		json_decref(got);
	}
	if (!ret)
		*reply = got;
	return ret;
}

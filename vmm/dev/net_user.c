/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * net_user: the guest's network with libslirp, in a process of its own (net_slirp.h) that has no
 * guest memory and no files. A thread transfers its frames to the guest; vCPUs send without
 * waiting.
 *
 * Messages of the process are not trusted: each one is a frame for the guest if its length is
 * valid, else it is dropped.
 */
#include "vmm/dev/net_user.h"

#include "base/thread.h"
#include "base/helper.h"
#include "vmm/dev/net_slirp.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* Maximum number of frames between two checks for the end. */
#define FRAMES 64u

struct net_user {
	struct net_link link; /* first: cast from it */
	struct net_config cfg;
	struct helper helper;
	int stop_fd;
	pthread_t thread;
	bool started;
	atomic_bool gone;
	net_receive_fn *receive;
	void *ctx;
};

/* Transfers all waiting frames to the guest. Returns false when the process has ended. */
static bool user_receive(struct net_user *u)
{
	uint8_t frame[NET_FRAME_MAX + 1];

	for (unsigned int i = 0; i < FRAMES; i++) {
		ssize_t n = read(u->helper.socket, frame, sizeof(frame));

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return true;
		if (n <= 0)
			return false;
		if (n >= (ssize_t)NET_FRAME_MIN && n <= (ssize_t)NET_FRAME_MAX)
			u->receive(u->ctx, frame, (size_t)n);
	}
	return true;
}

static void *user_main(void *arg)
{
	struct net_user *u = arg;
	struct pollfd fds[] = { { u->helper.socket, POLLIN, 0 }, { u->stop_fd, POLLIN, 0 } };

	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			break;
		if (fds[1].revents)
			return NULL;
		if (fds[0].revents && !user_receive(u))
			break;
	}
	atomic_store(&u->gone, true);
	helper_abandon(&u->helper);
	if (u->cfg.ended)
		u->cfg.ended(u->cfg.ctx, u->helper.how);
	return NULL;
}

static int user_start(struct net_link *l, struct err *e)
{
	struct net_user *u = (struct net_user *)l;
	int ret = thread_start(&u->thread, THREAD_NET_USER, user_main, u);

	u->started = ret == 0;
	return ret ? err_set(e, ret, "cannot start a thread: %s", strerror(ret)) : 0;
}

/* Sends a frame. If the socket has no room, the frame is lost, as on a wire. */
static bool user_send(struct net_link *l, const uint8_t *frame, size_t len)
{
	struct net_user *u = (struct net_user *)l;

	return !atomic_load(&u->gone) && write(u->helper.socket, frame, len) == (ssize_t)len;
}

static void user_destroy(struct net_link *l)
{
	struct net_user *u = (struct net_user *)l;
	uint64_t one = 1;

	if (u->started) {
		(void)!write(u->stop_fd, &one, sizeof(one));
		pthread_join(u->thread, NULL);
	}
	helper_end(&u->helper);
	if (u->stop_fd >= 0)
		close(u->stop_fd);
	free(u);
}

/* Waits until the process reports that it serves, or an error. */
static int user_begin(struct net_user *u, struct err *e)
{
	struct net_begin begin = { 0 };

	if (!helper_wait(&u->helper, HELPER_BEGIN_MS) ||
	    read(u->helper.socket, &begin, sizeof(begin)) != (ssize_t)sizeof(begin) ||
	    begin.ret > 0 || begin.ret < -HELPER_MAX_ERRNO) {
		helper_abandon(&u->helper);
		return err_set(e, EPIPE, "--net user: its process %s", u->helper.how);
	}
	begin.text[sizeof(begin.text) - 1] = 0;
	return begin.ret ? err_set(e, -begin.ret, "%s", begin.text) : 0;
}

static int user_fork(struct net_user *u, struct err *e)
{
	const struct helper_work work = { "the network", THREAD_NET_SLIRP, net_slirp_main,
					  &u->cfg };
	int bytes = NET_SOCKET_BYTES, ret = helper_fork(&u->helper, &work, e);

	ret = ret ? ret : user_begin(u, e);
	if (ret)
		return ret;
	(void)setsockopt(u->helper.socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	/* Only this end is non-blocking: a vCPU must not wait, but the process may. */
	if (fcntl(u->helper.socket, F_SETFL, O_NONBLOCK) < 0)
		return err_set(e, errno, "--net user: %s", strerror(errno));
	u->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return u->stop_fd < 0 ? err_set(e, errno, "eventfd: %s", strerror(errno)) : 0;
}

int net_user_new(struct net_link **out, const struct net_config *cfg, net_receive_fn *receive,
		 void *ctx, struct err *e)
{
	struct net_user *u = calloc(1, sizeof(*u));
	int ret;

	if (!u)
		return err_nomem(e);
	u->link = (struct net_link){ user_start, user_send, user_destroy };
	u->cfg = *cfg;
	u->stop_fd = -1;
	u->receive = receive;
	u->ctx = ctx;
	helper_init(&u->helper);
	ret = user_fork(u, e);
	if (ret)
		user_destroy(&u->link);
	else
		*out = &u->link;
	return ret;
}

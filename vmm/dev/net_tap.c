/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * net_tap: a tap interface (Documentation/networking/tuntap.rst). It exists already or is created,
 * which needs CAP_NET_ADMIN; the host's administrator assigns addresses or a bridge to it.
 */
#include "vmm/dev/net_tap.h"

#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define TUN_DEVICE "/dev/net/tun"

struct net_tap {
	struct net_link link; /* first: cast from it */
	int fd, stop_fd;
	pthread_t thread;
	bool started;
	net_receive_fn *receive;
	void *ctx;
};

static void *tap_main(void *arg)
{
	struct net_tap *t = arg;
	struct pollfd fds[] = { { t->fd, POLLIN, 0 }, { t->stop_fd, POLLIN, 0 } };
	uint8_t frame[NET_FRAME_MAX];

	for (;;) {
		ssize_t n;

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			break;
		if (fds[1].revents || (fds[0].revents & (POLLERR | POLLNVAL)))
			break;
		/* A longer frame is cut; no such MTU is configured. */
		n = read(t->fd, frame, sizeof(frame));
		if (n > 0)
			t->receive(t->ctx, frame, (size_t)n);
	}
	return NULL;
}

static int tap_start(struct net_link *l, struct err *e)
{
	struct net_tap *t = (struct net_tap *)l;
	int ret = thread_start(&t->thread, THREAD_NET_TAP, tap_main, t);

	t->started = ret == 0;
	return ret ? err_set(e, ret, "cannot start a thread: %s", strerror(ret)) : 0;
}

/*
 * Sends a frame. If the interface does not accept it (it is down, its queue is full), it is lost,
 * as on a wire.
 */
static bool tap_send(struct net_link *l, const uint8_t *frame, size_t len)
{
	return write(((struct net_tap *)l)->fd, frame, len) == (ssize_t)len;
}

static void tap_destroy(struct net_link *l)
{
	struct net_tap *t = (struct net_tap *)l;
	uint64_t one = 1;

	if (t->started) {
		(void)!write(t->stop_fd, &one, sizeof(one));
		pthread_join(t->thread, NULL);
	}
	if (t->fd >= 0)
		close(t->fd);
	if (t->stop_fd >= 0)
		close(t->stop_fd);
	free(t);
}

static int tap_open(struct net_tap *t, const char *name, struct err *e)
{
	struct ifreq ifr = { .ifr_flags = IFF_TAP | IFF_NO_PI };

	if (strlen(name) >= sizeof(ifr.ifr_name) || !*name)
		return err_set(e, EINVAL, "tap interface '%s': a name has 1 to %zu bytes", name,
			       sizeof(ifr.ifr_name) - 1);
	t->fd = open(TUN_DEVICE, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (t->fd < 0)
		return err_set(e, errno, TUN_DEVICE ": %s; load the module tun, or use --net user",
			       strerror(errno));
	memcpy(ifr.ifr_name, name, strlen(name));
	if (ioctl(t->fd, TUNSETIFF, &ifr) < 0)
		return err_set(e, errno,
			       "tap interface %s: %s; make one that you may use: `ip tuntap add "
			       "dev %s mode tap user $USER` as root, or use --net user",
			       name, strerror(errno), name);
	return 0;
}

int net_tap_new(struct net_link **out, const struct net_config *cfg, net_receive_fn *receive,
		void *ctx, struct err *e)
{
	struct net_tap *t = calloc(1, sizeof(*t));
	int ret;

	if (!t)
		return err_nomem(e);
	t->link = (struct net_link){ tap_start, tap_send, tap_destroy };
	t->fd = t->stop_fd = -1;
	t->receive = receive;
	t->ctx = ctx;
	ret = tap_open(t, cfg->tap, e);
	if (!ret) {
		t->stop_fd = eventfd(0, EFD_CLOEXEC);
		if (t->stop_fd < 0)
			ret = err_set(e, errno, "eventfd: %s", strerror(errno));
	}
	if (ret)
		tap_destroy(&t->link);
	else
		*out = &t->link;
	return ret;
}

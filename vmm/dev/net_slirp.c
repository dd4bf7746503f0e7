/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * net_slirp: libslirp in the process of the guest's network.
 *
 * Only this process loads the library, because it brings GLib. One thread does everything.
 */
#include "vmm/dev/net_slirp.h"

#include "base/clock.h"
#include "base/helper.h"
#include "base/library.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <slirp/libslirp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* clang-format off */
#define SLIRP_FUNCTIONS(X) \
	X(slirp_new) \
	X(slirp_pollfds_fill) \
	X(slirp_pollfds_poll) \
	X(slirp_input) \
	X(slirp_add_hostfwd)
/* clang-format on */

/* Maximum number of the guest's frames between two checks of the host's sockets. */
#define FRAMES 256u
#define POLL_MAX 1024u
#define TIMERS_MAX 16u
#define NS_PER_MS 1000000u

struct timer {
	SlirpTimerCb cb;
	void *opaque;
	int64_t at_ms; /* -1: not armed */
	bool used;
};

struct net_slirp {
	struct {
		SLIRP_FUNCTIONS(LIBRARY_MEMBER)
	} lib;
	Slirp *slirp;
	struct timer timer[TIMERS_MAX];
	struct pollfd fds[POLL_MAX];
	unsigned int nfds;
};

/* -- callbacks of libslirp -------------------------------------------------------------------- */

/*
 * Sends a frame to the machine. Blocks while there is no room: the machine's limit, or a busy host,
 * slows down the senders.
 */
static ssize_t on_packet(const void *buf, size_t len, void *opaque)
{
	(void)opaque;
	if (len <= NET_FRAME_MAX)
		(void)!write(HELPER_SOCKET, buf, len);
	return (ssize_t)len;
}

static void on_guest_error(const char *msg, void *opaque)
{
	(void)msg;
	(void)opaque;
}

static int64_t on_clock(void *opaque)
{
	(void)opaque;
	return (int64_t)clock_mono_ns();
}

static void *on_timer_new(SlirpTimerCb cb, void *cb_opaque, void *opaque)
{
	struct net_slirp *u = opaque;

	for (unsigned int i = 0; i < TIMERS_MAX; i++)
		if (!u->timer[i].used) {
			u->timer[i] = (struct timer){ cb, cb_opaque, -1, true };
			return &u->timer[i];
		}
	return NULL; /* libslirp needs one timer, for router advertisements */
}

static void on_timer_free(void *timer, void *opaque)
{
	struct timer *t = timer;

	(void)opaque;
	if (t)
		t->used = false;
}

static void on_timer_mod(void *timer, int64_t at_ms, void *opaque)
{
	struct timer *t = timer;

	(void)opaque;
	if (t)
		t->at_ms = at_ms;
}

static void on_fd(int fd, void *opaque)
{
	(void)fd;
	(void)opaque;
}

static void on_notify(void *opaque)
{
	(void)opaque; /* it notifies this thread itself */
}

/* -- the loop ---------------------------------------------------------------------------- */

static const struct {
	int slirp;
	short poll;
} bits[] = {
	{ SLIRP_POLL_IN, POLLIN },   { SLIRP_POLL_OUT, POLLOUT }, { SLIRP_POLL_PRI, POLLPRI },
	{ SLIRP_POLL_ERR, POLLERR }, { SLIRP_POLL_HUP, POLLHUP },
};

static int add_poll(int fd, int events, void *opaque)
{
	struct net_slirp *u = opaque;
	short want = 0;

	if (u->nfds == POLL_MAX)
		return -1;
	for (unsigned int i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		if (events & bits[i].slirp)
			want |= bits[i].poll;
	u->fds[u->nfds] = (struct pollfd){ fd, want, 0 };
	return (int)u->nfds++;
}

static int get_events(int at, void *opaque)
{
	struct net_slirp *u = opaque;
	int events = 0;

	if (at < 0 || (unsigned int)at >= u->nfds)
		return 0;
	for (unsigned int i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		if (u->fds[at].revents & bits[i].poll)
			events |= bits[i].slirp;
	return events;
}

/* Runs the timers that are due. Returns the ms to the next one, at most `wait`. */
static uint32_t run_timers(struct net_slirp *u, uint32_t wait)
{
	int64_t now = (int64_t)(clock_mono_ns() / NS_PER_MS);

	for (unsigned int i = 0; i < TIMERS_MAX; i++) {
		struct timer *t = &u->timer[i];

		if (!t->used || t->at_ms < 0)
			continue;
		if (t->at_ms <= now) {
			t->at_ms = -1;
			t->cb(t->opaque);
		}
		if (t->used && t->at_ms >= 0 && t->at_ms - now < wait)
			wait = t->at_ms > now ? (uint32_t)(t->at_ms - now) : 0;
	}
	return wait;
}

/* Passes the guest's frames to libslirp. Returns false when the socket has been closed. */
static bool take_frames(struct net_slirp *u)
{
	uint8_t frame[NET_FRAME_MAX + 1];

	for (unsigned int i = 0; i < FRAMES; i++) {
		ssize_t n = recv(HELPER_SOCKET, frame, sizeof(frame), MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 && errno == EAGAIN;
		if (n >= (ssize_t)NET_FRAME_MIN && n <= (ssize_t)NET_FRAME_MAX)
			u->lib.slirp_input(u->slirp, frame, (int)n);
	}
	return true;
}

static void serve(struct net_slirp *u)
{
	while (take_frames(u)) {
		uint32_t wait = run_timers(u, 1000);
		int ready;

		u->fds[0] = (struct pollfd){ HELPER_SOCKET, POLLIN, 0 };
		u->nfds = 1;
		u->lib.slirp_pollfds_fill(u->slirp, &wait, add_poll, u);
		ready = poll(u->fds, u->nfds, (int)(wait < 1000 ? wait : 1000));
		u->lib.slirp_pollfds_poll(u->slirp, ready < 0, get_events, u);
	}
}

/* -- making it ------------------------------------------------------------------------------ */

static int slirp_load(struct net_slirp *u, struct err *e)
{
	static const char *const names[] = { SLIRP_FUNCTIONS(LIBRARY_NAME) };
	const struct library want = {
		.soname = "libslirp.so.0",
		.what = "--net user",
		.hint = "install the package libslirp0 (4.1 or later)",
		.names = names,
		.nnames = sizeof(names) / sizeof(names[0]),
	};

	return library_load(&want, (void **)&u->lib, e);
}

static struct in_addr slirp_address(unsigned int last)
{
	return (struct in_addr){ htonl(0x0a000200u | last) }; /* 10.0.2.x */
}

static int add_forwards(struct net_slirp *u, const struct net_config *cfg, struct err *e)
{
	for (unsigned int i = 0; i < cfg->nforwards; i++) {
		const struct net_forward *f = &cfg->forward[i];

		errno = 0;
		if (u->lib.slirp_add_hostfwd(u->slirp, f->udp,
					     (struct in_addr){ htonl(INADDR_LOOPBACK) }, f->host,
					     slirp_address(15), f->guest) < 0)
			return err_set(e, errno ? errno : EADDRINUSE,
				       "--net user: cannot listen on port %u of 127.0.0.1: %s",
				       f->host, strerror(errno ? errno : EADDRINUSE));
	}
	return 0;
}

static int create(struct net_slirp *u, const struct net_config *cfg, struct err *e)
{
	static const SlirpCb callbacks = {
		.send_packet = on_packet,
		.guest_error = on_guest_error,
		.clock_get_ns = on_clock,
		.timer_new = on_timer_new,
		.timer_free = on_timer_free,
		.timer_mod = on_timer_mod,
		.register_poll_fd = on_fd,
		.unregister_poll_fd = on_fd,
		.notify = on_notify,
	};
	SlirpConfig sc = {
		.version = 1,
		.in_enabled = true,
		.vnetwork = slirp_address(0),
		.vnetmask = { htonl(0xffffff00u) },
		.vhost = slirp_address(2),
		.vhostname = "guest",
		.vdhcp_start = slirp_address(15),
		.vnameserver = slirp_address(3),
		.restricted = cfg->restricted,
		.disable_host_loopback = !cfg->host_loopback,
	};

	u->slirp = u->lib.slirp_new(&sc, &callbacks, u);
	if (!u->slirp)
		return err_set(e, EIO, "--net user: libslirp does not start");
	return add_forwards(u, cfg, e);
}

int net_slirp_main(void *ctx)
{
	const struct net_config *cfg = ctx;
	struct net_slirp *u = calloc(1, sizeof(*u));
	struct net_begin begin = { .ret = -ENOMEM };
	struct err e = { 0 };
	int bytes = NET_SOCKET_BYTES;

	(void)setsockopt(HELPER_SOCKET, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	if (u)
		begin.ret = slirp_load(u, &e);
	/* Ports of the host are bound before rights are given up. */
	begin.ret = begin.ret ? begin.ret : create(u, cfg, &e);
	if (!begin.ret && cfg->bind)
		begin.ret = cfg->bind(cfg->ctx, &e);
	memcpy(begin.text, e.text, sizeof(begin.text));
	if (write(HELPER_SOCKET, &begin, sizeof(begin)) == (ssize_t)sizeof(begin) && !begin.ret)
		serve(u);
	return 0;
}

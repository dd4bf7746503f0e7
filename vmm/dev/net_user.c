/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * net_user: the guest's network by libslirp, on a thread of its own.
 *
 * The library is loaded when it is asked for: it brings GLib, which no other run should
 * wait for. Only its thread calls it; frames of the guest wait in a ring for it.
 */
#include "vmm/dev/net_link.h"

#include "base/clock.h"
#include "base/thread.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <slirp/libslirp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LIBRARY "libslirp.so.0"
#define FRAMES 256u /* of the guest that wait; more are lost, as on a wire */
#define POLL_MAX 1024u
#define TIMERS_MAX 16u
#define NS_PER_MS 1000000u

struct timer {
	SlirpTimerCb cb;
	void *opaque;
	int64_t at_ms; /* -1: not armed */
	bool used;
};

struct frame {
	uint16_t len;
	uint8_t bytes[NET_FRAME_MAX];
};

struct net_user {
	struct net_link link; /* first: cast from it */
	void *library;
	struct {
		__typeof__(&slirp_new) create;
		__typeof__(&slirp_cleanup) cleanup;
		__typeof__(&slirp_pollfds_fill) fill;
		__typeof__(&slirp_pollfds_poll) poll;
		__typeof__(&slirp_input) input;
		__typeof__(&slirp_add_hostfwd) forward;
	} lib;
	Slirp *slirp;
	int wake_fd;
	pthread_t thread;
	bool started;
	net_receive_fn *receive;
	void *ctx;
	struct timer timer[TIMERS_MAX];
	struct pollfd fds[POLL_MAX];
	unsigned int nfds;
	pthread_mutex_t lock; /* what is below */
	bool stop;
	struct frame *frame; /* FRAMES */
	unsigned int head, n;
};

/* -- what libslirp asks of us; on our thread -------------------------------------------- */

static ssize_t on_packet(const void *buf, size_t len, void *opaque)
{
	struct net_user *u = opaque;

	if (len <= NET_FRAME_MAX)
		u->receive(u->ctx, buf, len);
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
	struct net_user *u = opaque;

	for (unsigned int i = 0; i < TIMERS_MAX; i++)
		if (!u->timer[i].used) {
			u->timer[i] = (struct timer){ cb, cb_opaque, -1, true };
			return &u->timer[i];
		}
	return NULL; /* it has one, for router advertisements */
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
	(void)opaque; /* it is this thread that is told */
}

/* -- the thread -------------------------------------------------------------------------- */

static const struct {
	int slirp;
	short poll;
} bits[] = {
	{ SLIRP_POLL_IN, POLLIN },   { SLIRP_POLL_OUT, POLLOUT }, { SLIRP_POLL_PRI, POLLPRI },
	{ SLIRP_POLL_ERR, POLLERR }, { SLIRP_POLL_HUP, POLLHUP },
};

static int add_poll(int fd, int events, void *opaque)
{
	struct net_user *u = opaque;
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
	struct net_user *u = opaque;
	int events = 0;

	if (at < 0 || (unsigned int)at >= u->nfds)
		return 0;
	for (unsigned int i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		if (u->fds[at].revents & bits[i].poll)
			events |= bits[i].slirp;
	return events;
}

/* One frame of the guest's; false: none, or it is to stop. */
static bool take_frame(struct net_user *u, struct frame *out, bool *stop)
{
	bool any;

	pthread_mutex_lock(&u->lock);
	*stop = u->stop;
	any = u->n && !u->stop;
	if (any) {
		const struct frame *f = &u->frame[u->head];

		out->len = f->len;
		memcpy(out->bytes, f->bytes, f->len);
		u->head = (u->head + 1) % FRAMES;
		u->n--;
	}
	pthread_mutex_unlock(&u->lock);
	return any;
}

/* Runs what is due; ms to the next one is at most `wait`. */
static uint32_t run_timers(struct net_user *u, uint32_t wait)
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

static void *user_main(void *arg)
{
	struct net_user *u = arg;
	struct frame f;
	uint64_t n;
	bool stop;

	for (;;) {
		uint32_t wait;
		int ready;

		while (take_frame(u, &f, &stop))
			u->lib.input(u->slirp, f.bytes, f.len);
		if (stop)
			return NULL;
		wait = run_timers(u, 1000);
		u->fds[0] = (struct pollfd){ u->wake_fd, POLLIN, 0 };
		u->nfds = 1;
		u->lib.fill(u->slirp, &wait, add_poll, u);
		ready = poll(u->fds, u->nfds, (int)(wait < 1000 ? wait : 1000));
		if (u->fds[0].revents)
			(void)!read(u->wake_fd, &n, sizeof(n));
		u->lib.poll(u->slirp, ready < 0, get_events, u);
	}
}

static int user_start(struct net_link *l, struct err *e)
{
	struct net_user *u = (struct net_user *)l;
	int ret = thread_start(&u->thread, THREAD_NET_USER, user_main, u);

	u->started = ret == 0;
	return ret ? err_set(e, ret, "cannot start a thread: %s", strerror(ret)) : 0;
}

static bool user_send(struct net_link *l, const uint8_t *frame, size_t len)
{
	struct net_user *u = (struct net_user *)l;
	uint64_t one = 1;
	bool taken;

	pthread_mutex_lock(&u->lock);
	taken = u->n < FRAMES;
	if (taken) {
		struct frame *f = &u->frame[(u->head + u->n++) % FRAMES];

		f->len = (uint16_t)len;
		memcpy(f->bytes, frame, len);
	}
	pthread_mutex_unlock(&u->lock);
	(void)!write(u->wake_fd, &one, sizeof(one));
	return taken;
}

static void user_destroy(struct net_link *l)
{
	struct net_user *u = (struct net_user *)l;
	uint64_t one = 1;

	if (u->started) {
		pthread_mutex_lock(&u->lock);
		u->stop = true;
		pthread_mutex_unlock(&u->lock);
		(void)!write(u->wake_fd, &one, sizeof(one));
		pthread_join(u->thread, NULL);
	}
	if (u->slirp)
		u->lib.cleanup(u->slirp);
	if (u->wake_fd >= 0)
		close(u->wake_fd);
	/* The library stays: GLib can't be unloaded. */
	pthread_mutex_destroy(&u->lock);
	free(u->frame);
	free(u);
}

/* -- making it ------------------------------------------------------------------------------ */

static int net_user_load(struct net_user *u, struct err *e)
{
	const struct {
		void **to;
		const char *name;
	} want[] = {
		{ (void **)&u->lib.create, "slirp_new" },
		{ (void **)&u->lib.cleanup, "slirp_cleanup" },
		{ (void **)&u->lib.fill, "slirp_pollfds_fill" },
		{ (void **)&u->lib.poll, "slirp_pollfds_poll" },
		{ (void **)&u->lib.input, "slirp_input" },
		{ (void **)&u->lib.forward, "slirp_add_hostfwd" },
	};

	u->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!u->library)
		return err_set(e, ENOENT, "--net user needs %s: install the package libslirp0",
			       LIBRARY);
	for (unsigned int i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		*want[i].to = dlsym(u->library, want[i].name);
		if (!*want[i].to)
			return err_set(e, ENOENT,
				       "%s has no %s: a version of 4.1 or later is "
				       "needed",
				       LIBRARY, want[i].name);
	}
	return 0;
}

static struct in_addr net_user_address(unsigned int last)
{
	return (struct in_addr){ htonl(0x0a000200u | last) }; /* 10.0.2.x */
}

static int add_forwards(struct net_user *u, const struct net_config *cfg, struct err *e)
{
	for (unsigned int i = 0; i < cfg->nforwards; i++) {
		const struct net_forward *f = &cfg->forward[i];

		errno = 0;
		if (u->lib.forward(u->slirp, f->udp, (struct in_addr){ htonl(INADDR_LOOPBACK) },
				   f->host, net_user_address(15), f->guest) < 0)
			return err_set(e, errno ? errno : EADDRINUSE,
				       "--net user: cannot listen on port %u of 127.0.0.1: %s",
				       f->host, strerror(errno ? errno : EADDRINUSE));
	}
	return 0;
}

static int create(struct net_user *u, const struct net_config *cfg, struct err *e)
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
		.vnetwork = net_user_address(0),
		.vnetmask = { htonl(0xffffff00u) },
		.vhost = net_user_address(2),
		.vhostname = "guest",
		.vdhcp_start = net_user_address(15),
		.vnameserver = net_user_address(3),
		.restricted = cfg->restricted,
		.disable_host_loopback = !cfg->host_loopback,
	};
	int ret;

	u->slirp = u->lib.create(&sc, &callbacks, u);
	if (!u->slirp)
		return err_set(e, EIO, "--net user: libslirp does not start");
	ret = add_forwards(u, cfg, e);
	if (ret)
		return ret;
	u->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return u->wake_fd < 0 ? err_set(e, errno, "eventfd: %s", strerror(errno)) : 0;
}

int net_user_new(struct net_link **out, const struct net_config *cfg, net_receive_fn *receive,
		 void *ctx, struct err *e)
{
	struct net_user *u = calloc(1, sizeof(*u));
	int ret;

	if (!u)
		return err_set(e, ENOMEM, "out of memory");
	pthread_mutex_init(&u->lock, NULL);
	u->link = (struct net_link){ user_start, user_send, user_destroy };
	u->wake_fd = -1;
	u->receive = receive;
	u->ctx = ctx;
	u->frame = calloc(FRAMES, sizeof(*u->frame));
	ret = u->frame ? 0 : err_set(e, ENOMEM, "out of memory");
	ret = ret ? ret : net_user_load(u, e);
	ret = ret ? ret : create(u, cfg, e);
	if (ret)
		user_destroy(&u->link);
	else
		*out = &u->link;
	return ret;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/libvirt/watch.h"

#include "base/thread.h"

#include "profile/record/libvirt/private.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/*
 * libvirt stores callbacks of all events in one type. A cast by way of this type causes no warning.
 */
#define GENERIC_CALLBACK(f) ((virConnectDomainEventGenericCallback)(void (*)(void))(f))

/* A daemon that does not answer for 30 s counts as gone (also libvirt's default). */
#define KEEPALIVE_SECONDS 5
#define KEEPALIVE_COUNT 5u

struct libvirt_watch {
	struct libvirt_host *host;
	virDomainPtr dom;
	int callback; /* -1: none */
	bool close_callback;
	int timer; /* -1: none; wakes the loop */
	int fd;
	pthread_t thread;
	bool started;
	atomic_bool stop, deaf, bind;
	atomic_int ended; /* 1 + the event and its detail; 0: none yet */
};

/* -- what an event means --------------------------------------------------------------- */

static struct libvirt_end because(const char *text, const char *event, bool more)
{
	return (struct libvirt_end){ text, event, more };
}

static struct libvirt_end suspended(int detail)
{
	switch (detail) {
	case VIR_DOMAIN_EVENT_SUSPENDED_MIGRATED:
	case VIR_DOMAIN_EVENT_SUSPENDED_POSTCOPY:
	case VIR_DOMAIN_EVENT_SUSPENDED_POSTCOPY_FAILED:
		return because("the domain is being migrated to another host", "migrated", false);
	case VIR_DOMAIN_EVENT_SUSPENDED_IOERROR:
		return because("the domain was paused because of an I/O error", "paused", false);
	case VIR_DOMAIN_EVENT_SUSPENDED_WATCHDOG:
		return because("the domain was paused by its watchdog", "paused", false);
	default:
		return because("the domain was paused", "paused", false);
	}
}

static struct libvirt_end stopped(int detail)
{
	switch (detail) {
	case VIR_DOMAIN_EVENT_STOPPED_SHUTDOWN:
		return because("the domain was shut down", "shutdown", false);
	case VIR_DOMAIN_EVENT_STOPPED_DESTROYED:
		return because("the domain was destroyed", "destroyed", false);
	case VIR_DOMAIN_EVENT_STOPPED_CRASHED:
		return because("the domain has crashed", "crashed", false);
	case VIR_DOMAIN_EVENT_STOPPED_MIGRATED:
		return because("the domain was migrated to another host", "migrated", false);
	case VIR_DOMAIN_EVENT_STOPPED_SAVED:
		return because("the domain was saved to a file", "saved", false);
	case VIR_DOMAIN_EVENT_STOPPED_FAILED:
		return because("the domain's VMM has failed", "failed", false);
	default:
		return because("the domain was stopped", "stopped", false);
	}
}

bool libvirt_event_is_end(int event, int detail, struct libvirt_end *out)
{
	switch (event) {
	case VIR_DOMAIN_EVENT_SUSPENDED:
		*out = suspended(detail);
		return true;
	case VIR_DOMAIN_EVENT_STOPPED:
		*out = stopped(detail);
		return true;
	case VIR_DOMAIN_EVENT_SHUTDOWN:
		/* QEMU reports this even if it is killed. */
		*out = because("the domain was shut down", "shutdown", true);
		return true;
	case VIR_DOMAIN_EVENT_PMSUSPENDED:
		*out = because("the guest has gone to sleep", "paused", false);
		return true;
	case VIR_DOMAIN_EVENT_CRASHED:
		*out = because("the guest has crashed", "crashed", false);
		return true;
	default: /* defined, started, resumed, ... */
		return false;
	}
}

bool libvirt_state_is_end(int state, int reason, int *event, int *detail)
{
	static const int stopped_as[] = {
		[VIR_DOMAIN_SHUTOFF_SHUTDOWN] = VIR_DOMAIN_EVENT_STOPPED_SHUTDOWN,
		[VIR_DOMAIN_SHUTOFF_DESTROYED] = VIR_DOMAIN_EVENT_STOPPED_DESTROYED,
		/*
		 * libvirt reports a VMM that has gone in this way; its event is this one. A guest's
		 * own crash has another event.
		 */
		[VIR_DOMAIN_SHUTOFF_CRASHED] = VIR_DOMAIN_EVENT_STOPPED_FAILED,
		[VIR_DOMAIN_SHUTOFF_MIGRATED] = VIR_DOMAIN_EVENT_STOPPED_MIGRATED,
		[VIR_DOMAIN_SHUTOFF_SAVED] = VIR_DOMAIN_EVENT_STOPPED_SAVED,
		[VIR_DOMAIN_SHUTOFF_FAILED] = VIR_DOMAIN_EVENT_STOPPED_FAILED,
	};

	if (state != VIR_DOMAIN_SHUTOFF || reason < VIR_DOMAIN_SHUTOFF_SHUTDOWN ||
	    reason > VIR_DOMAIN_SHUTOFF_FAILED)
		return false;
	*event = VIR_DOMAIN_EVENT_STOPPED;
	*detail = stopped_as[reason];
	return true;
}

/* -- the thread's functions ------------------------------------------------------------ */

static void keep_end(struct libvirt_watch *w, int event, int detail)
{
	atomic_store(&w->ended, 1 + (event << 8 | (detail & 0xff)));
}

static int on_lifecycle(virConnectPtr conn, virDomainPtr dom, int event, int detail, void *ctx)
{
	struct libvirt_watch *w = ctx;
	struct libvirt_end end, before;
	uint64_t one = 1;

	(void)conn;
	(void)dom;
	/* The first event is the cause, unless a later one may give the reason. */
	if (!libvirt_event_is_end(event, detail, &end) ||
	    (libvirt_watch_end(w, &before) && !before.more))
		return 0;
	keep_end(w, event, detail);
	(void)!write(w->fd, &one, sizeof(one));
	return 0;
}

static void on_close(virConnectPtr conn, int reason, void *ctx)
{
	struct libvirt_watch *w = ctx;

	(void)conn;
	(void)reason;
	atomic_store(&w->deaf, true);
}

/* Runs once when the thread is woken. */
static void on_timer(int timer, void *ctx)
{
	const struct libvirt_watch *w = ctx;

	w->host->virEventUpdateTimeout(timer, -1);
}

static void *loop(void *arg)
{
	struct libvirt_watch *w = arg;

	while (!atomic_load(&w->stop)) {
		if (atomic_exchange(&w->bind, false))
			thread_bind(THREAD_LIBVIRT);
		if (w->host->virEventRunDefaultImpl() < 0)
			break;
	}
	return NULL;
}

/* -- the caller's functions ------------------------------------------------------------ */

static int start_loop(struct libvirt_watch *w, struct err *e)
{
	int ret;

	w->timer = w->host->virEventAddTimeout(-1, on_timer, w, NULL);
	if (w->timer < 0)
		return libvirt_failed(w->host, EIO, "libvirt", e);
	/* Ctrl-C and ptrace's signals are handled by other threads. */
	ret = thread_start(&w->thread, THREAD_LIBVIRT, loop, w);
	if (ret)
		return err_set(e, ret, "cannot start a thread: %s", strerror(ret));
	w->started = true;
	return 0;
}

static int listen_to(struct libvirt_watch *w, const struct libvirt_domain *d, struct err *e)
{
	struct libvirt_host *h = w->host;
	virDomainInfo info;

	w->dom = libvirt_domain_get(h, d);
	if (!w->dom)
		return libvirt_failed(h, EIO, "libvirt", e);
	w->callback =
		h->virConnectDomainEventRegisterAny(h->conn, w->dom, VIR_DOMAIN_EVENT_ID_LIFECYCLE,
						    GENERIC_CALLBACK(on_lifecycle), w, NULL);
	if (w->callback < 0)
		return libvirt_failed(h, EIO, "libvirt", e);
	/* Drivers without a daemon cannot lose it. */
	w->close_callback = !h->virConnectRegisterCloseCallback(h->conn, on_close, w, NULL);
	h->virConnectSetKeepAlive(h->conn, KEEPALIVE_SECONDS, KEEPALIVE_COUNT);
	/* Events before the callback was registered are contained in the state. */
	if (h->virDomainGetInfo(w->dom, &info) < 0)
		return libvirt_failed(h, EIO, "libvirt", e);
	if (info.state > VIR_DOMAIN_BLOCKED)
		return err_set(e, ECANCELED, "domain %s does not run: resume or start it first",
			       d->name);
	return 0;
}

int libvirt_watch_start(struct libvirt_watch **out, struct libvirt_host *h,
			const struct libvirt_domain *d, struct err *e)
{
	struct libvirt_watch *w = calloc(1, sizeof(*w));
	int ret = 0;

	if (!w)
		return err_nomem(e);
	w->host = h;
	w->callback = w->timer = -1;
	w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->fd < 0)
		ret = err_set(e, errno, "eventfd: %s", strerror(errno));
	ret = ret ? ret : start_loop(w, e);
	ret = ret ? ret : listen_to(w, d, e);
	if (ret) {
		libvirt_watch_stop(w);
		return ret;
	}
	*out = w;
	return 0;
}

int libvirt_watch_bind(struct libvirt_watch *w, struct err *e)
{
	int ret = thread_bind_prepare(THREAD_LIBVIRT);

	if (ret)
		return err_set(e, ret, "cannot bind a thread: %s", strerror(ret));
	atomic_store(&w->bind, true);
	w->host->virEventUpdateTimeout(w->timer, 0);
	return 0;
}

int libvirt_watch_fd(const struct libvirt_watch *w)
{
	return w->fd;
}

bool libvirt_watch_end(const struct libvirt_watch *w, struct libvirt_end *out)
{
	int seen = atomic_load(&w->ended);

	return seen && libvirt_event_is_end((seen - 1) >> 8, (seen - 1) & 0xff, out);
}

void libvirt_watch_query(struct libvirt_watch *w)
{
	int state, reason, event, detail;

	if (!w->host->virDomainGetState(w->dom, &state, &reason, 0) &&
	    libvirt_state_is_end(state, reason, &event, &detail))
		keep_end(w, event, detail);
}

bool libvirt_watch_is_disconnected(const struct libvirt_watch *w)
{
	return atomic_load(&w->deaf);
}

void libvirt_watch_stop(struct libvirt_watch *w)
{
	if (!w)
		return;
	if (w->callback >= 0)
		w->host->virConnectDomainEventDeregisterAny(w->host->conn, w->callback);
	if (w->close_callback)
		w->host->virConnectUnregisterCloseCallback(w->host->conn, on_close);
	if (w->started) {
		atomic_store(&w->stop, true);
		w->host->virEventUpdateTimeout(w->timer, 0);
		pthread_join(w->thread, NULL);
	}
	if (w->timer >= 0)
		w->host->virEventRemoveTimeout(w->timer);
	if (w->dom)
		w->host->virDomainFree(w->dom);
	if (w->fd >= 0)
		close(w->fd);
	free(w);
}

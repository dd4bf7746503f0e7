/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libvirt_watch: what happens to a domain, as libvirt tells it: the first thing after
 * which its vCPUs don't run here any more.
 *
 * A thread of its own runs libvirt's event loop. All calls come from one other thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_LIBVIRT_WATCH_H
#define KVMPROF_PROFILE_RECORD_LIBVIRT_WATCH_H

#include "profile/record/libvirt/host.h"

struct libvirt_watch;

struct libvirt_end {
	const char *text; /* "the domain was destroyed" */
	const char
		*event; /* paused, shutdown, stopped, destroyed, migrated, saved, crashed, failed */
	bool more;	/* a later event may say why */
};

/*
 * What a lifecycle event means (libvirt's numbers, virDomainEventType and the details of
 * each); false: the machine goes on. Pure.
 */
bool libvirt_event_is_end(int event, int detail, struct libvirt_end *out);

/*
 * The event, and its detail, that leads to a state and its reason (virDomainState); false: it runs, or nobody
 * knows. Pure.
 */
bool libvirt_state_is_end(int state, int reason, int *event, int *detail);

/*
 * h was opened with LIBVIRT_EVENTS and outlives the watch. -ECANCELED: the domain does not
 * run now.
 */
int libvirt_watch_start(struct libvirt_watch **out, struct libvirt_host *h,
			const struct libvirt_domain *d, struct err *e);
/* Has the thread bind itself (thread_bind()). Returns 0 or a negative error. */
int libvirt_watch_bind(struct libvirt_watch *w, struct err *e);
/* An eventfd: counts what has ended it, and what was said of it afterwards. */
int libvirt_watch_fd(const struct libvirt_watch *w);
/* False: nothing has ended it yet. */
bool libvirt_watch_end(const struct libvirt_watch *w, struct libvirt_end *out);
/*
 * Ask for the state, which may be an end that no event has told. Waits for the daemon: 30 s at most, then it counts
 * as gone away.
 */
void libvirt_watch_ask(struct libvirt_watch *w);
/* The daemon has gone away: nothing more is heard. */
bool libvirt_watch_is_deaf(const struct libvirt_watch *w);
/* NULL is fine. */
void libvirt_watch_stop(struct libvirt_watch *w);

#endif

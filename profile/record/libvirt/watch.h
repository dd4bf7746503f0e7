/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libvirt_watch: watches the events of a domain for the first one after which its vCPUs no longer
 * run here.
 *
 * A thread of its own runs libvirt's event loop. All functions are called by one other thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_LIBVIRT_WATCH_H
#define KVMPROF_PROFILE_RECORD_LIBVIRT_WATCH_H

#include "profile/record/libvirt/host.h"

struct libvirt_watch;

struct libvirt_end {
	const char *text; /* such as "the domain was destroyed"; a static string */
	/* static: paused, shutdown, stopped, destroyed, migrated, saved, crashed, failed */
	const char *event;
	bool more; /* a later event may give the reason */
};

/*
 * Describes a lifecycle event (libvirt's numbers, virDomainEventType and its details) in *out.
 * Returns false if the machine continues to run after it. Pure.
 */
bool libvirt_event_is_end(int event, int detail, struct libvirt_end *out);

/*
 * Finds the event and its detail that lead to a state and its reason (virDomainState). Returns
 * false if the domain runs, or if the state is unknown. Pure.
 */
bool libvirt_state_is_end(int state, int reason, int *event, int *detail);

/*
 * Starts to watch domain d. h must be opened with LIBVIRT_EVENTS and outlive the watch. Returns 0,
 * -ECANCELED if the domain does not run now, or another -errno; *e has the reason. The caller frees
 * *out with libvirt_watch_stop().
 */
int libvirt_watch_start(struct libvirt_watch **out, struct libvirt_host *h,
			const struct libvirt_domain *d, struct err *e);
/* Lets the thread restrict itself (thread_bind()). Returns 0 or -errno with the reason in *e. */
int libvirt_watch_bind(struct libvirt_watch *w, struct err *e);
/*
 * Returns an eventfd, owned by w, that is written at the end of the domain, and at later events
 * that describe it.
 */
int libvirt_watch_fd(const struct libvirt_watch *w);
/* Returns whether the domain has ended, and describes its end in *out. */
bool libvirt_watch_end(const struct libvirt_watch *w, struct libvirt_end *out);
/*
 * Queries the state, which may be an end without an event. Waits for the daemon for at most 30 s,
 * after which it counts as gone.
 */
void libvirt_watch_query(struct libvirt_watch *w);
/* Returns whether the daemon has gone, so that no more events come. */
bool libvirt_watch_is_disconnected(const struct libvirt_watch *w);
/* Ends the thread and frees w. NULL is allowed. */
void libvirt_watch_stop(struct libvirt_watch *w);

#endif

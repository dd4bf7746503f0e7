/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/libvirt/attach_domain.h"

#include "profile/record/libvirt/pid.h"
#include "vmm/attach/machines.h"
#include "vmm/attach/process.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * libvirt reports an end after its cleanup, which takes seconds on a busy machine. It is queried
 * meanwhile, as its event may be missed; while it does not answer, no further query is made.
 */
#define QUESTION_MS 1000
#define MOST_QUESTIONS 10u

static bool parse_pid(const char *s, pid_t *out)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(s, &end, 10);
	if (errno || *s < '0' || *s > '9' || *end || v < 1 || v > INT_MAX)
		return false;
	*out = (pid_t)v;
	return true;
}

static int find_process(struct attach_domain *d, const struct attach_request *r, pid_t *pid,
			struct err *e)
{
	if (!d->domain.active)
		return err_set(e, ECANCELED, "domain %s does not run (%s)", d->domain.name,
			       d->domain.state);
	if (!d->domain.running)
		return err_set(e, ECANCELED, "domain %s is %s: resume it first", d->domain.name,
			       d->domain.state);
	return r->monitor ? libvirt_pid_query(d->host, &d->domain, pid, e)
			  : libvirt_pid_find(d->domain.name, d->domain.uuid, pid, e);
}

static int find_domain(const struct attach_request *r, pid_t *pid, struct attach_domain **out,
		       struct err *e)
{
	struct attach_domain *d = calloc(1, sizeof(*d));
	unsigned int flags = LIBVIRT_EVENTS | (r->monitor ? LIBVIRT_WRITE : 0);
	int ret;

	if (!d)
		return err_nomem(e);
	if ((ret = libvirt_host_open(&d->host, r->uri, flags, e)) ||
	    (ret = libvirt_host_find(d->host, r->what, &d->domain, e)) ||
	    (ret = find_process(d, r, pid, e)) ||
	    (ret = libvirt_watch_start(&d->watch, d->host, &d->domain, e))) {
		attach_domain_close(d);
		return ret;
	}
	*out = d;
	return 0;
}

int attach_domain_bind(const struct attach_domain *d, struct err *e)
{
	return libvirt_watch_bind(d->watch, e);
}

int attach_domain_find(const struct attach_request *r, pid_t *pid, struct attach_domain **domain,
		       struct err *e)
{
	struct process process;
	struct err why = { 0 }, no_process = { 0 };
	int ret;

	*domain = NULL;
	if (r->way == ATTACH_PID)
		return parse_pid(r->what, pid)
			       ? 0
			       : err_set(e, EINVAL, "%.60s: expected a PID", r->what);
	if (r->way == ATTACH_NAME)
		return machines_by_name(r->what, pid, e);
	if (r->way == ATTACH_DOMAIN || r->uri)
		return find_domain(r, pid, domain, e);
	if (!parse_pid(r->what, pid)) {
		ret = find_domain(r, pid, domain, &why);
		if (ret == -ENOPKG || ret == -ECONNREFUSED)
			return err_set(e, -ret,
				       "%.100s is not a PID, and no domain can be found: %s",
				       r->what, why.text);
		return ret ? err_set(e, -ret, "%s", why.text) : 0;
	}
	ret = process_look(&process, *pid, &no_process);
	if (ret != -ESRCH && ret != -ENODEV)
		return 0; /* attach_open() reports anything else that is wrong with it */
	ret = find_domain(r, pid, domain, &why);
	if (!ret)
		return 0;
	if (ret == -ENOENT)
		return err_set(e, ENOENT, "%s; nor has a libvirt domain this id or name",
			       no_process.text);
	/* If no libvirt answers, a PID was meant. */
	if (ret == -ENOPKG || ret == -ECONNREFUSED)
		return err_set(e, no_process.code, "%s", no_process.text);
	return err_set(e, -ret, "%s", why.text);
}

void attach_domain_close(struct attach_domain *d)
{
	if (!d)
		return;
	libvirt_watch_stop(d->watch);
	libvirt_host_close(d->host);
	free(d);
}

void attach_domain_wait(const struct attach_domain *d, int stop_fd)
{
	struct pollfd p[2] = { { .fd = libvirt_watch_fd(d->watch), .events = POLLIN },
			       { .fd = stop_fd, .events = POLLIN } };
	struct libvirt_end end;
	unsigned int asked = 0;
	uint64_t count;

	while (asked < MOST_QUESTIONS && !libvirt_watch_is_disconnected(d->watch)) {
		if (libvirt_watch_end(d->watch, &end) && !end.more)
			return;
		if (poll(p, 2, QUESTION_MS) < 0)
			continue;
		if (p[1].revents)
			return;
		if (p[0].revents) {
			(void)!read(p[0].fd, &count, sizeof(count));
		} else {
			libvirt_watch_query(d->watch);
			asked++;
		}
	}
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/libvirt/host.h"

#include "base/cleanup.h"
#include "base/thread.h"
#include "profile/record/libvirt/private.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LIBVIRT_OPEN_S 30
#define LIBVIRT_WITHOUT "without libvirt: `kvmprof attach PID`, and `pgrep -a qemu` shows PIDs"

/* -- the library ---------------------------------------------------------------------- */

/* By default the library prints errors itself. */
static void ignore_error(void *ctx, virErrorPtr error)
{
	(void)ctx;
	(void)error;
}

static int host_load(struct libvirt_host *h, struct err *e)
{
	static const char *const names[] = { LIBVIRT_FUNCTIONS(LIBRARY_NAME) };
	const struct library want = {
		.soname = "libvirt.so.0",
		.what = "libvirt",
		.hint = "install the package libvirt0; " LIBVIRT_WITHOUT,
		.names = names,
		.nnames = ARRAY_SIZE(names),
	};
	struct err why = { 0 };

	/* -ENOENT is reserved for a missing domain. */
	if (library_load(&want, (void **)h, &why))
		return err_set(e, ENOPKG, "%s", why.text);
	h->virSetErrorFunc(NULL, ignore_error);
	return 0;
}

int libvirt_failed(const struct libvirt_host *h, int code, const char *what, struct err *e)
{
	virErrorPtr last = h->virGetLastError();
	char text[300];

	snprintf(text, sizeof(text), "%s",
		 last && last->message ? last->message : "libvirt does not say why");
	for (char *c = text; *c; c++)
		if (!isprint((unsigned char)*c))
			*c = ' ';
	return err_set(e, code, "%s: %s", what, text);
}

/* -- the connection ------------------------------------------------------------------- */

/*
 * Format: DRIVER[+TRANSPORT]://[USER@][HOST][:PORT]/PATH. Without a host and over a UNIX socket it
 * is this machine; with a host and without a transport libvirt uses TLS.
 */
bool libvirt_uri_is_remote(const char *uri)
{
	const char *sep = uri ? strstr(uri, "://") : NULL, *plus;

	if (!sep)
		return false;
	plus = memchr(uri, '+', (size_t)(sep - uri));
	if (plus && strncmp(plus, "+unix:", strlen("+unix:")))
		return true;
	/* test:///default and similar URIs have no host either. */
	return sep[3] && sep[3] != '/' && sep[3] != '?' && !plus;
}

static int refuse_remote(const char *uri, struct err *e)
{
	return err_set(e, EREMOTE, "libvirt at %.200s is another machine's: run kvmprof there",
		       uri);
}

/*
 * A connection that a separate thread opens, because libvirt waits for its daemon without a limit.
 */
struct opening {
	struct libvirt_host *h;
	char *uri; /* NULL: libvirt's own choice */
	unsigned int flags;
	sem_t done;
	int ret;
	struct err err;
};

static int host_connect(struct opening *o)
{
	struct libvirt_host *h = o->h;

	h->conn = o->flags & LIBVIRT_WRITE ? h->virConnectOpen(o->uri)
					   : h->virConnectOpenReadOnly(o->uri);
	if (!h->conn) {
		struct err why = { 0 };

		(void)libvirt_failed(h, ECONNREFUSED, "libvirt", &why);
		return err_set(&o->err, ECONNREFUSED,
			       "%.300s; start its daemon (libvirtd, or virtqemud), or name another "
			       "with -c URI; %s",
			       why.text, LIBVIRT_WITHOUT);
	}
	h->uri = h->virConnectGetURI(h->conn);
	if (!h->uri)
		return libvirt_failed(h, EIO, "libvirt", &o->err);
	/* An alias may stand for one. */
	return libvirt_uri_is_remote(h->uri) ? refuse_remote(h->uri, &o->err) : 0;
}

static void *opening_main(void *opening)
{
	struct opening *o = opening;

	o->ret = host_connect(o);
	sem_post(&o->done);
	return NULL;
}

static void opening_free(struct opening *o)
{
	sem_destroy(&o->done);
	free(o->uri);
	free(o);
}

/* Connects within a time limit. After -ETIMEDOUT the thread owns h, and may never end. */
static int host_connect_in_time(struct libvirt_host *h, const char *uri, unsigned int flags,
				struct err *e)
{
	struct opening *o = calloc(1, sizeof(*o));
	struct timespec end;
	pthread_t thread;
	int ret;

	if (!o || (uri && !(o->uri = strdup(uri)))) {
		free(o);
		return err_nomem(e);
	}
	o->h = h;
	o->flags = flags;
	sem_init(&o->done, 0, 0);
	ret = thread_start(&thread, THREAD_LIBVIRT, opening_main, o);
	if (ret) {
		opening_free(o);
		return err_set(e, ret, "cannot start a thread: %s", strerror(ret));
	}
	pthread_detach(thread);
	/* The host's wall clock may be set back meanwhile. */
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += LIBVIRT_OPEN_S;
	while ((ret = sem_clockwait(&o->done, CLOCK_MONOTONIC, &end)) < 0 && errno == EINTR)
		;
	if (ret < 0)
		return err_set(e, ETIMEDOUT, "libvirt: its daemon does not answer");
	ret = o->ret ? err_set(e, -o->ret, "%s", o->err.text) : 0;
	opening_free(o);
	return ret;
}

int libvirt_host_open(struct libvirt_host **out, const char *uri, unsigned int flags, struct err *e)
{
	struct libvirt_host *h;
	const char *asked;
	int ret;

	if (!uri || !*uri)
		uri = getenv("VIRSH_DEFAULT_CONNECT_URI");
	uri = uri && *uri ? uri : NULL;
	asked = uri ? uri : getenv("LIBVIRT_DEFAULT_URI");
	/* Checked before the network is used, which may require a password. */
	if (libvirt_uri_is_remote(asked))
		return refuse_remote(asked, e);
	h = calloc(1, sizeof(*h));
	if (!h)
		return err_nomem(e);
	ret = host_load(h, e);
	if (!ret && flags & LIBVIRT_EVENTS && h->virEventRegisterDefaultImpl() < 0)
		ret = libvirt_failed(h, EIO, "libvirt", e);
	ret = ret ? ret : host_connect_in_time(h, uri, flags, e);
	if (ret == -ETIMEDOUT)
		return ret;
	if (ret) {
		libvirt_host_close(h);
		return ret;
	}
	*out = h;
	return 0;
}

void libvirt_host_close(struct libvirt_host *h)
{
	if (!h)
		return;
	if (h->conn)
		h->virConnectClose(h->conn);
	free(h->uri);
	free(h);
}

const char *libvirt_host_uri(const struct libvirt_host *h)
{
	return h->uri;
}

/* -- domains -------------------------------------------------------------------------- */

static const char *state_name(unsigned char state)
{
	/* As virsh domstate prints them; virDomainState. */
	static const char *const name[] = {
		[VIR_DOMAIN_NOSTATE] = "no state",     [VIR_DOMAIN_RUNNING] = "running",
		[VIR_DOMAIN_BLOCKED] = "idle",	       [VIR_DOMAIN_PAUSED] = "paused",
		[VIR_DOMAIN_SHUTDOWN] = "in shutdown", [VIR_DOMAIN_SHUTOFF] = "shut off",
		[VIR_DOMAIN_CRASHED] = "crashed",      [VIR_DOMAIN_PMSUSPENDED] = "pmsuspended",
	};

	return state < ARRAY_SIZE(name) ? name[state] : "unknown";
}

static int host_describe(struct libvirt_host *h, virDomainPtr dom, struct libvirt_domain *out,
			 struct err *e)
{
	const char *name = h->virDomainGetName(dom);
	unsigned int id = h->virDomainGetID(dom);
	virDomainInfo info;

	if (!name || h->virDomainGetInfo(dom, &info) < 0 ||
	    h->virDomainGetUUIDString(dom, out->uuid) < 0)
		return libvirt_failed(h, EIO, "libvirt", e);
	if (strlen(name) >= sizeof(out->name))
		return err_set(e, ENAMETOOLONG, "domain %.60s...: its name is too long", name);
	strcpy(out->name, name);
	/* It is printed on terminals; where it matters the UUID is used. */
	for (char *c = out->name; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	out->id = id == (unsigned int)-1 || id > INT_MAX ? -1 : (int)id;
	out->state = state_name(info.state);
	out->active = out->id >= 0;
	/* Drivers that do not know the state report "no state". */
	out->running = info.state <= VIR_DOMAIN_BLOCKED;
	out->vcpus = info.nrVirtCpu;
	out->memory = (uint64_t)info.memory << 10;
	return 0;
}

static bool parse_id(const char *s, int *out)
{
	unsigned long v;
	char *end;

	errno = 0;
	v = strtoul(s, &end, 10);
	*out = (int)v;
	return *s >= '0' && *s <= '9' && !*end && !errno && v <= INT_MAX;
}

static bool looks_like_uuid(const char *s)
{
	size_t digits = 0;

	for (; *s; s++) {
		if (*s != '-' && !isxdigit((unsigned char)*s))
			return false;
		digits += *s != '-';
	}
	return digits == 32;
}

static bool is_no_domain(const struct libvirt_host *h)
{
	virErrorPtr last = h->virGetLastError();

	return last && last->code == VIR_ERR_NO_DOMAIN;
}

int libvirt_host_find(struct libvirt_host *h, const char *what, struct libvirt_domain *out,
		      struct err *e)
{
	virDomainPtr dom = NULL;
	int id, ret;

	if (parse_id(what, &id))
		dom = h->virDomainLookupByID(h->conn, id);
	if (!dom && looks_like_uuid(what))
		dom = h->virDomainLookupByUUIDString(h->conn, what);
	if (!dom)
		dom = h->virDomainLookupByName(h->conn, what);
	if (!dom && is_no_domain(h))
		return err_set(e, ENOENT,
			       "domain %.200s: %s has none of that name, UUID or id (`kvmprof list "
			       "--domains`)",
			       what, h->uri);
	if (!dom)
		return libvirt_failed(h, EIO, "libvirt", e);
	ret = host_describe(h, dom, out, e);
	h->virDomainFree(dom);
	return ret;
}

virDomainPtr libvirt_domain_get(const struct libvirt_host *h, const struct libvirt_domain *d)
{
	return h->virDomainLookupByUUIDString(h->conn, d->uuid);
}

static int by_name(const void *a, const void *b)
{
	const struct libvirt_domain *x = a, *y = b;

	return strcmp(x->name, y->name);
}

int libvirt_host_list(struct libvirt_host *h, struct libvirt_domain **out, size_t *n, struct err *e)
{
	virDomainPtr *doms = NULL;
	int count = h->virConnectListAllDomains(h->conn, &doms, 0), ret = 0;
	struct libvirt_domain *list;
	size_t used = 0;

	if (count < 0)
		return libvirt_failed(h, EIO, "libvirt", e);
	list = calloc((size_t)count + 1, sizeof(*list));
	if (!list)
		ret = err_nomem(e);
	for (int i = 0; i < count; i++) {
		struct err gone = { 0 };

		/* A domain that ends meanwhile is omitted. */
		if (list && !host_describe(h, doms[i], &list[used], &gone))
			used++;
		h->virDomainFree(doms[i]);
	}
	free(doms);
	if (ret)
		return ret;
	qsort(list, used, sizeof(*list), by_name);
	*out = list;
	*n = used;
	return 0;
}

int libvirt_host_xml(struct libvirt_host *h, const struct libvirt_domain *d, char **out,
		     struct err *e)
{
	virDomainPtr dom = libvirt_domain_get(h, d);
	char *xml = NULL;

	if (dom) {
		xml = h->virDomainGetXMLDesc(dom, VIR_DOMAIN_XML_INACTIVE);
		h->virDomainFree(dom);
	}
	if (!xml)
		return libvirt_failed(h, EIO, "libvirt", e);
	*out = xml;
	return 0;
}

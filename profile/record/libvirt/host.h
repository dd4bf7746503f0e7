/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libvirt_host: a connection to the libvirt of this machine, and its domains.
 *
 * The library is loaded when it is needed: with the forty libraries that it depends on it would
 * make each start of kvmprof four times as long. Connections are read-only, so that nothing can be
 * changed, unless LIBVIRT_WRITE is given.
 *
 * A process has one connection; one thread at a time uses it. The functions that return int return
 * 0 or -errno with the reason in *e. Texts in errors come from libvirt and are made one line.
 */
#ifndef KVMPROF_PROFILE_RECORD_LIBVIRT_HOST_H
#define KVMPROF_PROFILE_RECORD_LIBVIRT_HOST_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A domain's name is a file name, too. */
#define LIBVIRT_NAME_MAX 256u
#define LIBVIRT_UUID_SIZE 37u

struct libvirt_host;

struct libvirt_domain {
	int id; /* -1: it does not run */
	char name[LIBVIRT_NAME_MAX];
	char uuid[LIBVIRT_UUID_SIZE];
	const char *state; /* as virsh prints it; a static string */
	bool active;	   /* the domain has a process */
	bool running;	   /* its vCPUs run: it is neither paused nor off */
	unsigned int vcpus;
	uint64_t memory; /* bytes that it has now */
};

enum libvirt_open {
	LIBVIRT_EVENTS = 1, /* for libvirt_watch */
	LIBVIRT_WRITE = 2,  /* for libvirt_pid_query() */
};

/*
 * Returns whether the URI leads to another machine (or through a network to this one). For NULL and
 * an alias of libvirt.conf returns false, because that cannot be known.
 */
bool libvirt_uri_is_remote(const char *uri);

/*
 * Connects to uri; NULL: as virsh does: $VIRSH_DEFAULT_CONNECT_URI, $LIBVIRT_DEFAULT_URI, then
 * libvirt's choice. flags: of enum libvirt_open. Returns -ENOPKG if libvirt is not installed,
 * -ECONNREFUSED if no daemon runs, -ETIMEDOUT if it does not answer within 30 s, -EREMOTE if the
 * URI is another machine's. The caller frees *out with libvirt_host_close().
 */
int libvirt_host_open(struct libvirt_host **out, const char *uri, unsigned int flags,
		      struct err *e);
/* Closes the connection and frees h. NULL is allowed. */
void libvirt_host_close(struct libvirt_host *h);

/* Returns the URI that the daemon reports; valid as long as the connection. */
const char *libvirt_host_uri(const struct libvirt_host *h);

/* Finds a domain by id, UUID or name, in this order. Returns -ENOENT if there is none. */
int libvirt_host_find(struct libvirt_host *h, const char *what, struct libvirt_domain *out,
		      struct err *e);
/*
 * Lists all domains, also those that do not run, sorted by name. The caller frees *out with free().
 */
int libvirt_host_list(struct libvirt_host *h, struct libvirt_domain **out, size_t *n,
		      struct err *e);
/* Returns a domain's definition in *out, which the caller frees with free(). */
int libvirt_host_xml(struct libvirt_host *h, const struct libvirt_domain *d, char **out,
		     struct err *e);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libvirt_host: a connection to the libvirt of this machine, and its domains.
 *
 * The library is loaded when it is asked for: with the forty libraries that it brings
 * along it would make each start of kvmprof four times as long. Connections are
 * read-only, so that nothing can be changed, unless LIBVIRT_WRITE asks for more.
 *
 * One connection in a process; calls from any one thread at a time. Texts in errors come
 * from libvirt and are made one line.
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
	const char *state; /* as virsh calls it */
	bool active;	   /* there is a process */
	bool running;	   /* its vCPUs run: neither paused nor off */
	unsigned int vcpus;
	uint64_t memory; /* bytes that it has now */
};

enum libvirt_open {
	LIBVIRT_EVENTS = 1, /* libvirt_watch shall be used on it */
	LIBVIRT_WRITE = 2,  /* libvirt_pid_ask() shall be used on it */
};

/*
 * Does this URI lead to another machine (or through a network to this one)? NULL and an
 * alias of libvirt.conf do not, as far as can be seen.
 */
bool libvirt_uri_is_remote(const char *uri);

/*
 * uri NULL: as virsh has it: $VIRSH_DEFAULT_CONNECT_URI, $LIBVIRT_DEFAULT_URI, then what
 * libvirt finds. flags: of enum libvirt_open. -ENOPKG: libvirt is not installed;
 * -ECONNREFUSED: nobody answers; -EREMOTE: the URI is another machine's.
 */
int libvirt_host_open(struct libvirt_host **out, const char *uri, unsigned int flags,
		      struct err *e);
/* NULL is fine. */
void libvirt_host_close(struct libvirt_host *h);

/* As the daemon says it; lives as long as the connection. */
const char *libvirt_host_uri(const struct libvirt_host *h);

/* By id, UUID or name, in this order. -ENOENT: there is no such domain. */
int libvirt_host_find(struct libvirt_host *h, const char *what, struct libvirt_domain *out,
		      struct err *e);
/* All of them, also those that don't run, by name; *out is freed by the caller. */
int libvirt_host_list(struct libvirt_host *h, struct libvirt_domain **out, size_t *n,
		      struct err *e);
/* Its definition, as it was given; *out is freed by the caller. */
int libvirt_host_xml(struct libvirt_host *h, const struct libvirt_domain *d, char **out,
		     struct err *e);

#endif

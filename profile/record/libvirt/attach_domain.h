/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attach_domain: what `kvmprof attach` was told to attach to: a process, or a libvirt
 * domain whose process is found and which is watched from then on. Main thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_LIBVIRT_ATTACH_DOMAIN_H
#define KVMPROF_PROFILE_RECORD_LIBVIRT_ATTACH_DOMAIN_H

#include "profile/record/libvirt/host.h"
#include "profile/record/libvirt/watch.h"

enum attach_way {
	ATTACH_GUESS, /* a number that is the PID of a process with vCPUs, else a domain */
	ATTACH_PID,
	ATTACH_DOMAIN,
	ATTACH_NAME, /* the machine that its VMM's command line calls so */
};

struct attach_request {
	enum attach_way way;
	const char *what; /* PID, or name, UUID or id of a domain, or a machine's name */
	const char *uri;  /* NULL: as virsh; with one a number is a domain's id */
	bool monitor;	  /* ask QEMU for the PID */
};

struct attach_domain {
	struct libvirt_host *host;
	struct libvirt_watch *watch;
	struct libvirt_domain domain;
};

/*
 * *pid: the VMM. *domain: freed by attach_domain_close(), or NULL for a mere process, of
 * which nothing more has been asked than whether it has vCPUs.
 */
int attach_domain_find(const struct attach_request *r, pid_t *pid, struct attach_domain **domain,
		       struct err *e);
/* Binds the domain's thread, once the process is sandboxed. */
int attach_domain_bind(const struct attach_domain *d, struct err *e);
/* NULL is fine. */
void attach_domain_close(struct attach_domain *d);

/*
 * Something has ended it: wait for libvirt to say what it was, for some seconds in which it answers
 * at most, and no longer than until stop_fd is readable.
 */
void attach_domain_wait(const struct attach_domain *d, int stop_fd);

#endif

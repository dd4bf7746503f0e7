/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attach_domain: finds what `kvmprof attach` attaches to: a process, or a libvirt domain whose
 * process is found and which is watched from then on. All functions are called by the main thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_LIBVIRT_ATTACH_DOMAIN_H
#define KVMPROF_PROFILE_RECORD_LIBVIRT_ATTACH_DOMAIN_H

#include "profile/record/libvirt/host.h"
#include "profile/record/libvirt/watch.h"

enum attach_selector {
	ATTACH_GUESS, /* the PID of a process with vCPUs, if it is a number; otherwise a domain */
	ATTACH_PID,
	ATTACH_DOMAIN,
	ATTACH_NAME, /* the machine that has this name on its VMM's command line */
};

struct attach_request {
	enum attach_selector way;
	const char *what; /* PID; or name, UUID or id of a domain; or a machine's name; borrowed */
	const char *uri;  /* NULL: as virsh; with a URI a number is a domain's id */
	bool monitor;	  /* ask QEMU for the PID */
};

struct attach_domain {
	struct libvirt_host *host;
	struct libvirt_watch *watch;
	struct libvirt_domain domain;
};

/*
 * Finds the process. *pid is the VMM. *domain is the domain, which the caller frees with
 * attach_domain_close(), or NULL for a process, of which only the existence of vCPUs was checked.
 * Returns 0 or -errno with the reason in *e.
 */
int attach_domain_find(const struct attach_request *r, pid_t *pid, struct attach_domain **domain,
		       struct err *e);
/*
 * Restricts the domain's thread, once the process is sandboxed. Returns 0 or -errno with the reason
 * in *e.
 */
int attach_domain_bind(const struct attach_domain *d, struct err *e);
/* Ends the watch, closes the connection and frees d. NULL is allowed. */
void attach_domain_close(struct attach_domain *d);

/*
 * Waits until libvirt reports why the machine has ended: as long as it answers, but at most some
 * seconds, and until stop_fd is readable.
 */
void attach_domain_wait(const struct attach_domain *d, int stop_fd);

#endif

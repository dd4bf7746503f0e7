/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libvirt_pid: finds the process of a libvirt domain, which libvirt's calls do not report.
 *
 * libvirt's own PID file is used if the process's command line contains the domain's UUID; if that
 * is not possible (another runtime directory, another PID namespace, no permission) all processes
 * are examined. Only libvirt_pid_query() sends a request to libvirt or QEMU. All functions are
 * called by the main thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_LIBVIRT_PID_H
#define KVMPROF_PROFILE_RECORD_LIBVIRT_PID_H

#include "profile/record/libvirt/host.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Returns whether this is the command line (arguments that end with NUL) of the domain's QEMU: by
 * its -uuid, or without that by guest=NAME in its -name. Pure.
 */
bool libvirt_pid_matches(const char *args, size_t len, const char *name, const char *uuid);

/*
 * Finds the process. Returns 0, -ESRCH if there is none, -ENOTUNIQ if several match, or another
 * -errno; *e has the reason.
 */
int libvirt_pid_find(const char *name, const char *uuid, pid_t *out, struct err *e);

/*
 * Stores the PID that QEMU itself reports (query-cpus-fast). libvirt then marks the domain as
 * tainted, so this is for the case that nothing else helps. h must be opened with LIBVIRT_WRITE.
 * Returns 0 or -errno with the reason in *e.
 */
int libvirt_pid_query(struct libvirt_host *h, const struct libvirt_domain *d, pid_t *pid,
		      struct err *e);

#endif

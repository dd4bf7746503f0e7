/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libvirt_pid: the process of a libvirt domain, which no call of libvirt tells.
 *
 * libvirt's own PID file, believed when the process's command line has the domain's UUID;
 * where that can't be (another runtime directory, another PID namespace, no permission)
 * all processes are looked at. Nothing is asked of libvirt or of QEMU, but by libvirt_pid_ask().
 */
#ifndef KVMPROF_PROFILE_RECORD_LIBVIRT_PID_H
#define KVMPROF_PROFILE_RECORD_LIBVIRT_PID_H

#include "profile/record/libvirt/host.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Is this the command line (arguments that end with NUL) of the domain's QEMU? By its
 * -uuid; one without that by guest=NAME in its -name. Pure.
 */
bool libvirt_pid_matches(const char *args, size_t len, const char *name, const char *uuid);

/* -ESRCH: no process is the domain's; -ENOTUNIQ: several say that they are. */
int libvirt_pid_find(const char *name, const char *uuid, pid_t *out, struct err *e);

/*
 * Stores the PID that QEMU itself reports (query-cpus-fast). libvirt marks the domain as tainted by that,
 * so it is for when nothing else helps. h was opened with LIBVIRT_WRITE.
 */
int libvirt_pid_ask(struct libvirt_host *h, const struct libvirt_domain *d, pid_t *pid,
		    struct err *e);

#endif

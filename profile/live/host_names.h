/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * host_names: functions of the host's kernel, by /proc/kallsyms, and of kvmprof itself.
 *
 * Read once, before rights are given up: without CAP_SYSLOG, or with kptr_restrict, all addresses there are 0.
 */
#ifndef KVMPROF_PROFILE_LIVE_HOST_NAMES_H
#define KVMPROF_PROFILE_LIVE_HOST_NAMES_H

#include "base/err.h"
#include "symbolizer/core/symtab.h"

struct host_names {
	struct symtab *kernel; /* frozen; NULL: not to be had, and addresses stand for names */
	struct symtab *own;    /* the same of this program, as linked; NULL: its file has none */
	uint64_t own_bias;     /* of its addresses in this process */
};

/* What can't be had is NULL. -errno with the reason where that is the kernel's. */
int host_names_read(struct host_names *n, struct err *why);
void host_names_deinit(struct host_names *n); /* all zero is fine */

/* The function at an address of the host; NULL: not known. n may be NULL. */
const char *host_names_at(const struct host_names *n, uint64_t ip);

#endif

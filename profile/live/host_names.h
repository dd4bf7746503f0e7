/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * host_names: functions of the host's kernel, by /proc/kallsyms.
 *
 * Read once, before rights are given up: without CAP_SYSLOG, or with kptr_restrict, all addresses there are 0.
 */
#ifndef KVMPROF_PROFILE_LIVE_HOST_NAMES_H
#define KVMPROF_PROFILE_LIVE_HOST_NAMES_H

#include "base/err.h"
#include "symbolizer/core/symtab.h"

/* *out is the caller's, frozen. -errno with the reason: then there are no names, and addresses are shown. */
int host_names_read(struct symtab **out, struct err *why);

#endif

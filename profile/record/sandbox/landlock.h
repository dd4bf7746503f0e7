/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * landlock: restricts the files and ports that this process can open from then on (landlock(7)).
 *
 * Descriptors that are open stay usable. The restriction holds for the calling thread and those
 * that it starts afterwards. Numbers are those of linux/landlock.h of Linux 6.12; the header of the
 * build machine may know fewer.
 */
#ifndef KVMPROF_PROFILE_RECORD_SANDBOX_LANDLOCK_H
#define KVMPROF_PROFILE_RECORD_SANDBOX_LANDLOCK_H

#include "profile/record/sandbox/sandbox.h"

/*
 * The lowest ABI that is used: before it (Linux 5.19) a file cannot be renamed from one directory
 * to another, which guests do in their shares.
 */
#define LANDLOCK_LEAST_ABI 2
/* The ABI that restricts signals (Linux 6.12). */
#define LANDLOCK_SIGNAL_ABI 6

/*
 * Returns the version that landlock_create_ruleset(2) reports, or -1 with errno set. The symbol is
 * weak, so that a test program can replace it and see what an older kernel enforces.
 */
long landlock_host_abi(void);

/*
 * Returns the host's ABI, or 0 if there is none, with the reason in *why (a static string). Any
 * thread.
 */
int landlock_probe(const char **why);

/*
 * Enforces the plan's paths and ports on the calling thread. abi is the result of landlock_probe(),
 * at least LANDLOCK_LEAST_ABI. To be called after PR_SET_NO_NEW_PRIVS. Returns 0 or -errno with the
 * reason in *e.
 */
int landlock_enter(const struct sandbox_plan *p, int abi, struct err *e);

#endif

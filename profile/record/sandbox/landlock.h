/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * landlock: the files and ports that this process may still open (landlock(7)).
 *
 * Descriptors that are open already stay as they are. The thread that calls it is bound, and those
 * that it starts afterwards. Numbers are those of linux/landlock.h of Linux 6.12; the header of
 * the machine that builds this may know fewer.
 */
#ifndef KVMPROF_PROFILE_RECORD_SANDBOX_LANDLOCK_H
#define KVMPROF_PROFILE_RECORD_SANDBOX_LANDLOCK_H

#include "profile/record/sandbox/sandbox.h"

/*
 * The least ABI that is used: before it (Linux 5.19) a file can't be renamed from one directory
 * to another, which guests do in their shares.
 */
#define LANDLOCK_LEAST_ABI 2
/* The ABI that confines signals (Linux 6.12). */
#define LANDLOCK_SIGNAL_ABI 6

/*
 * Returns what landlock_create_ruleset(2) says of its version: the ABI, or -1 with errno set. The symbol is weak, so that a
 * test program can have another one in its place and see what an older kernel enforces.
 */
long landlock_host_abi(void);

/* ABI of the host, 0: none; *why then says so. */
int landlock_probe(const char **why);

/* ABI: what landlock_probe() returned, at least LANDLOCK_LEAST_ABI. After PR_SET_NO_NEW_PRIVS. */
int landlock_enter(const struct sandbox_plan *p, int abi, struct err *e);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * namespace: a process that sees only one directory of the host, through a mount namespace of its
 * own (mount_namespaces(7), pivot_root(2)).
 *
 * The functions are called in a process with one thread, before landlock_enter(), which forbids
 * mounts.
 */
#ifndef KVMPROF_PROFILE_RECORD_SANDBOX_NAMESPACE_H
#define KVMPROF_PROFILE_RECORD_SANDBOX_NAMESPACE_H

#include <stdbool.h>

/*
 * Makes `dir` the root of the calling process. Without CAP_SYS_ADMIN it enters a user namespace
 * first, in which it keeps its user and group. *proc is a descriptor of its own /proc/self/fd, from
 * which no other part of /proc is reached; the caller closes it. Returns 0 or -errno. After a
 * failure the process may have the namespaces and still sees the host's files.
 */
int namespace_enter(const char *dir, bool read_only, int *proc);

/*
 * Makes a file system of its own the root of the calling process, in which a copy of this file lies
 * in its directory, and nothing else; one that cannot be read is left out. It is read-only.
 * Otherwise as namespace_enter().
 */
int namespace_enter_empty(const char *file);

/* Returns whether this host allows it, by trying it in a process that ends at once. Any thread. */
bool namespace_probe(void);

#endif

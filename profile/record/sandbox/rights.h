/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rights: capabilities(7) and no_new_privs, which belong to each thread (and are inherited from the
 * thread that started it); the user that a process becomes which carries out a guest's requests;
 * and limits of setrlimit(2). Any thread may call the functions; those that return int return 0 or
 * -errno unless their comment says otherwise.
 */
#ifndef KVMPROF_PROFILE_RECORD_SANDBOX_RIGHTS_H
#define KVMPROF_PROFILE_RECORD_SANDBOX_RIGHTS_H

#include "base/thread.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct rights_user {
	uid_t uid;
	gid_t gid;
};

/*
 * Returns the capabilities that a process of root's keeps for threads of this kind: a bit for each
 * CAP_*. Files are then accessed as root accesses them, below the directories that Landlock allows.
 * counters is the result of rights_counters(). other_user: the process is no longer root's
 * (rights_become()); it writes only to files of its own, and reads those of the plan.
 */
uint64_t rights_of(enum thread_kind kind, uint64_t counters, bool other_user);
/*
 * Returns the capabilities of all threads of a run's process; with `pagemap` also the one that
 * opens /proc/self/pagemap, which is needed until the main thread has restricted itself.
 */
uint64_t rights_of_all(uint64_t counters, bool pagemap, bool other_user);
/*
 * Returns the capabilities that perf_event_open() requires on this host, by perf_event_paranoid; 0
 * if `wanted` is false.
 */
uint64_t rights_counters(bool wanted);

/* Sets no_new_privs for the calling thread: no execve(2) gives rights from now on. */
int rights_no_new(void);
/* Drops all capabilities of the calling thread except those in `keep` that it has. */
int rights_keep(uint64_t keep);
/*
 * Changes the process to another user, without supplementary groups, while the calling thread keeps
 * its capabilities until rights_keep(). Other processes of that user cannot trace it
 * (PR_SET_DUMPABLE).
 */
int rights_become(const struct rights_user *user);
/* Returns whether the calling thread has any capability. */
bool rights_has_any(void);

/*
 * Chooses another user for a process of root's: the caller of sudo(8), by SUDO_UID and SUDO_GID, or
 * else one of the numbers that systemd gives to services without a user. Returns false, and leaves
 * *out unchanged, if this process is not root's or if its user namespace has no such number (a
 * container with few users).
 */
bool rights_choose_user(struct rights_user *out);

/*
 * Reads a map in the format of /proc/PID/uid_map (user_namespaces(7)). Returns whether it contains
 * the number `id`.
 */
bool rights_map_has(const char *path, unsigned long id);

/* Lowers both limits of a resource (RLIMIT_*) to at most `most`. */
int rights_limit(int what, uint64_t most);

#endif

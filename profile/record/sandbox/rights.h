/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rights: capabilities(7) and no_new_privs, which are each thread's own (a thread has those of the one that started
 * it); the user that a process becomes which runs what a guest decides; and limits of setrlimit(2).
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
 * What a process of root's keeps for threads of this kind: a bit for each CAP_*. Files are then
 * reached as root reaches them, below the directories that Landlock leaves. counters: of
 * rights_counters(). other_user: it is no process of root's any more (rights_become()), which writes to what is its own, and
 * reads what the plan has.
 */
uint64_t rights_of(enum thread_kind kind, uint64_t counters, bool other_user);
/* Of all threads of a run's process, and until the main thread has bound itself what opens /proc/self/pagemap. */
uint64_t rights_of_all(uint64_t counters, bool pagemap, bool other_user);
/* What perf_event_open() asks for on this host, as perf_event_paranoid says; 0: not wanted. */
uint64_t rights_counters(bool wanted);

/* On itself: no execve(2) gives rights from now on. -errno. */
int rights_no_new(void);
/* On itself: no capabilities but those of `keep` that it has. -errno. */
int rights_keep(uint64_t keep);
/*
 * Makes the process another user's, without supplementary groups, while the calling thread keeps its capabilities
 * until rights_keep(). Other processes of that user may not trace it (PR_SET_DUMPABLE). Returns 0 or -errno.
 */
int rights_become(const struct rights_user *user);
/* Has this thread any? */
bool rights_any(void);

/*
 * Chooses another user for a process of root's: the one who called sudo(8), by SUDO_UID and SUDO_GID, or else
 * one of the numbers that systemd gives to services without a user. Returns false, and leaves *out alone, if
 * this process is not root's or if its user namespace has no such number (a container with few users).
 */
bool rights_choose_user(struct rights_user *out);

/* Reads a map in the format of /proc/PID/uid_map (user_namespaces(7)). Returns true if it has the number `id`. */
bool rights_map_has(const char *path, unsigned long id);

/* Lowers both limits of a resource (RLIMIT_*) to at most `most`. Returns 0 or -errno. */
int rights_limit(int what, uint64_t most);

#endif

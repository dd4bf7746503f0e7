/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rights: capabilities(7) and no_new_privs. They are each thread's own; a thread has those of the
 * one that started it.
 */
#ifndef KVMPROF_PROFILE_RECORD_SANDBOX_RIGHTS_H
#define KVMPROF_PROFILE_RECORD_SANDBOX_RIGHTS_H

#include "base/thread.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * What a process of root's keeps for threads of this kind: a bit for each CAP_*. Files are then
 * reached as root reaches them, below the directories that Landlock leaves. counters: of
 * rights_counters().
 */
uint64_t rights_of(enum thread_kind kind, uint64_t counters);
/* Of all threads of a run's process, and until the main thread has bound itself what opens /proc/self/pagemap. */
uint64_t rights_of_all(uint64_t counters, bool pagemap);
/* What perf_event_open() asks for on this host, as perf_event_paranoid says; 0: not wanted. */
uint64_t rights_counters(bool wanted);

/* On itself: no execve(2) gives rights from now on. -errno. */
int rights_no_new(void);
/* On itself: no capabilities but those of `keep` that it has. -errno. */
int rights_keep(uint64_t keep);
/* Has this thread any? */
bool rights_any(void);

#endif

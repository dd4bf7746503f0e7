/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * filter: the table of calls.h as programs for seccomp(2), one for each kind of thread.
 *
 * Programs are made once (program.h), before the first thread of a kind is there. The first call outside of its
 * list traps: the handler writes a line that names the call and the thread, and ends the process with
 * status 1, so that what was recorded lies complete up to then where a killed run leaves it
 * (profile/format/perfdata/leftover.h); a guarded thread (base/fault.h) ends alone, and whose it is tells of it. Calls of other architectures kill at once.
 */
#ifndef KVMPROF_PROFILE_RECORD_SANDBOX_FILTER_H
#define KVMPROF_PROFILE_RECORD_SANDBOX_FILTER_H

#include "base/thread.h"
#include "profile/record/sandbox/sandbox.h"

#include <stdbool.h>

enum filter_mode {
	FILTER_ENDS,  /* the process */
	FILTER_TELLS, /* a line for each call and kind of thread, and the call is made */
};

/* Is there seccomp(2) with filters that trap? */
bool filter_probe(void);

/*
 * Main thread, once, before others enter: the handler of SIGSYS. It uses the plan's signals, gdb and counters.
 */
void filter_prepare(enum filter_mode mode, const struct sandbox_plan *plan);

/*
 * The program of a kind, once (some microseconds). After filter_prepare(), by one thread at a time, before
 * filter_enter(). -EPERM: the kind has no list; -errno.
 */
int filter_make(enum thread_kind kind);
/* On the thread itself. -EPERM: its kind has no list; -errno. */
int filter_enter(enum thread_kind kind);

#endif

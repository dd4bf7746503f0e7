/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * filter: the table of calls.h as programs for seccomp(2), one for each kind of thread.
 *
 * Programs are made once (program.h), before the first thread of a kind exists. The first call that
 * is not in a thread's list traps: the handler prints a line that names the call and the thread,
 * and ends the process with status 1, so that the samples up to then are complete where a killed
 * run leaves them (profile/format/perfdata/leftover.h). A guarded thread (base/fault.h) ends alone,
 * and its owner reports that. Calls of other architectures kill the process.
 */
#ifndef KVMPROF_PROFILE_RECORD_SANDBOX_FILTER_H
#define KVMPROF_PROFILE_RECORD_SANDBOX_FILTER_H

#include "base/thread.h"
#include "profile/record/sandbox/sandbox.h"

#include <stdbool.h>

enum filter_mode {
	FILTER_ENDS,  /* a call outside of the list ends the process */
	FILTER_TELLS, /* a line is printed for each call and kind of thread, and the call is made */
};

/* Returns whether the kernel has seccomp(2) with filters that trap. */
bool filter_probe(void);

/*
 * Installs the handler of SIGSYS. Called once by the main thread, before other functions below. It
 * uses signals, gdb and counters of *plan.
 */
void filter_prepare(enum filter_mode mode, const struct sandbox_plan *plan);

/*
 * Makes the program of a kind (some microseconds), once. Called after filter_prepare(), by one
 * thread at a time, before filter_enter(). Returns 0, -EPERM if the kind has no list, or another
 * -errno.
 */
int filter_make(enum thread_kind kind);
/*
 * Restricts the calling thread, for ever. Returns 0, -EPERM if its kind has no list, or another
 * -errno.
 */
int filter_enter(enum thread_kind kind);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * signals: what SIGINT, SIGTERM and SIGHUP do to this process.
 *
 * They end it at once, as they do to any, until something is there that must be finished: a guest that runs,
 * a profile that is written. Then they are reported through a descriptor, and the process has to end by itself. One
 * that does not, since it waits for somebody else, is ended at a second signal. Files that would be left are removed first.
 *
 * With signals_set(), SIGINT and SIGTERM count even where they were ignored, as they are in a script's background jobs.
 *
 * The state is the process's. Calls come from its main thread. A handler may run on any thread that has not
 * blocked these signals; threads of thread_start() have.
 */
#ifndef KVMPROF_BASE_SIGNALS_H
#define KVMPROF_BASE_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

#define SIGNALS_AGAIN_MS 300  /* timeout(1) sends its signal twice: that is one */
#define SIGNALS_GRACE_MS 1200 /* from a signal that is to end the process to its end */
#define SIGNALS_MAX_FILES 16

enum signals_mode {
	SIGNALS_END, /* the process ends at once */
	SIGNALS_REPORT, /* the first one is reported; at a second one there are SIGNALS_GRACE_MS left */
	SIGNALS_WATCH, /* the same; and from the first one on the process is watched */
	SIGNALS_GRACE, /* at the first one there are SIGNALS_GRACE_MS left */
};

/*
 * First of all, and first of all in a child that goes on without execve(2). A signal that the caller of this process ignores
 * (nohup(1)) stays ignored.
 */
void signals_init(void);
void signals_set(enum signals_mode mode);
/* Returns a descriptor that becomes readable when a signal was reported (SIGNALS_REPORT), or by signals_wake(). -1: there is none. */
int signals_fd(void);
/*
 * Watches the process until it is called with false: a process that has nearly no processor time for SIGNALS_GRACE_MS in
 * all is ended by the signal that came last. Its thread waits for somebody else, and the caller cannot call that thread off.
 */
void signals_watch(bool on);
/* Returns whether a signal was reported since the last call, and makes the descriptor unreadable. */
bool signals_came(void);
/* Returns the same and changes nothing. */
bool signals_are_there(void);
/* Makes the descriptor readable. Async-signal-safe. */
void signals_wake(void);

/*
 * A file, a socket or an empty directory that is removed if a signal ends the process. Returns what signals_keep()
 * takes. A path too many or too long is not noted: -1, which signals_keep() ignores.
 */
int signals_remove(const char *path);
void signals_keep(int file);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * signals: the effect of SIGINT, SIGTERM and SIGHUP on this process.
 *
 * They end the process at once, as by default, until it has something that must be finished: a
 * running guest, or a profile being written. From then on they are reported through a descriptor,
 * and the process must end by itself. If it does not, because it waits for somebody else, a second
 * signal ends it. Files noted with signals_remove() are removed first.
 *
 * After signals_set(), SIGINT and SIGTERM count even if they were ignored, as they are in
 * background jobs of a script.
 *
 * The state belongs to the process. Only the main thread calls these functions, unless stated
 * otherwise. A handler may run on any thread that does not block these signals; threads of
 * thread_start() block them.
 */
#ifndef KVMPROF_BASE_SIGNALS_H
#define KVMPROF_BASE_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

#define SIGNALS_AGAIN_MS 300  /* ms; timeout(1) sends its signal twice, which counts as one */
#define SIGNALS_GRACE_MS 1200 /* ms from the signal that must end the process to its end */
#define SIGNALS_MAX_FILES 16

enum signals_mode {
	SIGNALS_END,	/* a signal ends the process at once */
	SIGNALS_REPORT, /* the first one is reported; a second one leaves SIGNALS_GRACE_MS to end */
	SIGNALS_WATCH,	/* like REPORT; the first one also starts signals_watch() */
	SIGNALS_GRACE,	/* the first one leaves SIGNALS_GRACE_MS to end */
};

/*
 * Installs the handlers with mode SIGNALS_END. Called before anything else, also in a child that
 * continues without execve(2). A signal that the parent process set to be ignored (nohup(1)) stays
 * ignored.
 */
void signals_init(void);
/* Changes the mode and creates the descriptor of signals_fd() if there is none. */
void signals_set(enum signals_mode mode);
/*
 * Returns the descriptor that becomes readable when a signal is reported or by signals_wake(); -1:
 * there is none. It belongs to this module.
 */
int signals_fd(void);
/*
 * Starts or stops watching the process: a watched process that gets almost no processor time for
 * SIGNALS_GRACE_MS in total is ended by the signal that came last. Such a process has a thread that
 * waits for somebody else and cannot be interrupted by the caller.
 */
void signals_watch(bool on);
/*
 * Returns whether a signal was reported since the last call, and makes the descriptor unreadable.
 */
bool signals_take(void);
/*
 * Returns whether a signal was reported since the last signals_take(). Changes nothing. Any thread
 * may call it.
 */
bool signals_pending(void);
/* Makes the descriptor readable. Async-signal-safe; any thread may call it. */
void signals_wake(void);

/*
 * Notes a file, a socket or an empty directory to be removed if a signal ends the process. Copies
 * the path. Returns a handle for signals_keep(), or -1 (which signals_keep() ignores) if there are
 * too many paths or it is too long.
 */
int signals_remove(const char *path);
/* Forgets a path of signals_remove(). */
void signals_keep(int file);

#endif

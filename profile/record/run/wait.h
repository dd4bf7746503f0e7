/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wait: the main thread while the guest runs: signals, the console and its status line, the moments
 * of the markers, and the end. All functions are called by the main thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_WAIT_H
#define KVMPROF_PROFILE_RECORD_RUN_WAIT_H

#include "base/err.h"
#include "profile/record/console/console.h"

#include <stdbool.h>
#include <stdint.h>

struct run;

struct run_signals {
	int fd;		  /* readable after a signal: signals_fd(), borrowed */
	bool takes_stops; /* run_catch_stop_signals() is in effect */
};

struct run_status {
	struct status_figures now, before; /* the counters now, and a second or more ago */
	uint64_t drawn_ns;		   /* time of the last drawing */
};

/*
 * run_catch_signals() sets up the signals. Until run_report_signals() a signal ends the process
 * (base/signals.h), as nothing has to be completed yet. From then on it ends the guest but not the
 * profile. Returns 0 or -errno with the reason in *e.
 */
int run_catch_signals(struct run *r, struct err *e);
void run_report_signals(void);
/*
 * run_watch_start() reports signals like run_report_signals() while a machine is started. A signal
 * also ends a start that does nothing for SIGNALS_GRACE_MS, because a process does not answer; what
 * the exact engine waits for has time limits of its own. run_watch_end() is called before
 * run_wait(), for which a guest that sleeps is no reason to end.
 */
void run_watch_start(const struct run *r);
void run_watch_end(void);
/*
 * run_catch_stop_signals(), for a machine of another process: signals that stop this process
 * (Ctrl-Z) make r->signals.fd readable, too, because nothing of that process may be held while this
 * one is stopped. run_restore_stop_signals() restores their effect once nothing can be held any
 * more.
 */
void run_catch_stop_signals(struct run *r);
void run_restore_stop_signals(struct run *r);
/*
 * Returns whether a signal requests the end of the run. If a stop was requested, the process stops
 * here until it is continued.
 */
bool run_must_end(struct run *r);
/*
 * Waits for so long, or until a signal requests the end (-EINTR) or the machine has ended (-ESRCH, with the reason in *e).
 */
int run_nap(struct run *r, double ms, struct err *e);
/* Ends the sampling of another process's machine, whose vCPUs go on, and joins the threads. */
void run_leave(struct run *r);
/* Waits until the guest ends, or ends it because of a time limit, a marker or a signal. */
void run_wait(struct run *r);
/*
 * Writes the guest's remaining console output, as far as it is read: for some seconds if the end
 * was requested; without limit, until another signal, if the guest ended by itself.
 */
void run_drain_console(struct run *r);
/* Restores the default effect of signals, for the time up to run_deinit(). */
void run_restore_signals(void);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wait: the main thread while the guest runs: signals, the console and its status line, the moments of the
 * markers, and the end.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_WAIT_H
#define KVMPROF_PROFILE_RECORD_RUN_WAIT_H

#include "base/err.h"
#include "profile/record/console/console.h"

#include <stdbool.h>
#include <stdint.h>

struct run;

struct run_signals {
	int fd;		  /* signals_fd() */
	bool takes_stops; /* run_take_stops() */
};

struct run_status {
	struct status_figures now, before; /* of now, and of a second or more ago */
	uint64_t drawn_ns;		   /* when it was drawn last */
};

/*
 * Until run_report_signals() a signal ends the process (base/signals.h): nothing is there yet that must be finished. From
 * then on it ends the guest, and not the profile.
 */
int run_take_signals(struct run *r, struct err *e);
void run_report_signals(void);
/*
 * Attached to another process: signals that stop this one (Ctrl-Z) make r->signals.fd readable, too, as
 * nothing of that process may be held then; and are given back, once nothing can be.
 */
void run_take_stops(struct run *r);
void run_give_stops_back(struct run *r);
/* Has a signal come? True: the run is to end. A stop is made in here, and has passed. */
bool run_is_to_end(struct run *r);
/* Until the guest ends, or time, or a signal does it. */
void run_wait(struct run *r);
/*
 * What the guest has put on its console is written, as far as somebody reads it: after an end
 * that was asked for within seconds, after the guest's own until there is another signal.
 */
void run_drain_console(struct run *r);
/* From here on, up to run_deinit(), signals do to this process what they do to any. */
void run_leave_signals(void);

#endif

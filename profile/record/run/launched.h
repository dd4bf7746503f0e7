/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_launched: a run of `kvmprof attach` that begins with a VMM: one that it starts (-- VMM
 * ARGUMENTS), or one that it waits for (--wait NAME). All functions are called by the main thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_LAUNCHED_H
#define KVMPROF_PROFILE_RECORD_RUN_LAUNCHED_H

#include "base/err.h"
#include "vmm/attach/launch.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct attach_config;
struct console;
struct run;
struct run_options;

#define RUN_STATUS_TIMEOUT 124 /* exit status of timeout(1) */

/* All zero except that launch.link and launch.out are -1: no VMM was started. */
struct run_launched {
	struct launch launch;
	bool started, ended, timed_out;
	int status; /* exit status of the VMM, if it has ended by itself */
};

/* Initializes *l to that state. */
void run_launched_init(struct run_launched *l);
/*
 * Starts the VMM or waits for it, and stores its process in *cfg. Returns 0, -EINTR after a signal,
 * -ETIMEDOUT at --timeout, or another -errno, with the reason in *e. Without these options it does
 * nothing and returns 0.
 */
int run_launched_begin(struct run *r, struct attach_config *cfg, struct err *e);
/*
 * Handles a failed attachment, whose error is in *e: replaces it if the VMM could not be executed,
 * and otherwise ends the VMM.
 */
void run_launched_fail(struct run *r, struct err *e);
/* Copies the output that the VMM has written to the console, without waiting. */
void run_launched_copy_output(struct run_launched *l, struct console *c);
/* Returns when --timeout ends the run (CLOCK_MONOTONIC); UINT64_MAX: never. */
uint64_t run_launched_deadline_ns(const struct run *r);
/*
 * Ends the VMM, or waits for its exit status if it ends by itself. To be called after the last
 * sample.
 */
void run_launched_end(struct run *r);
/*
 * Returns the exit status that the VMM determines for the run: its own, RUN_STATUS_TIMEOUT, or 0 if
 * there is none.
 */
int run_launched_status(const struct run *r);
/* Closes the descriptors. */
void run_launched_close(struct run_launched *l);

#endif

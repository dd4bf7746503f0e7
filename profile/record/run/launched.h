/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_launched: a run of `kvmprof attach` that begins with a VMM: one that it starts (-- VMM ARGUMENTS), or one that it waits
 * for (--wait NAME). Main thread.
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

/* All zero but launch.link and launch.out -1 is "none was started". */
struct run_launched {
	struct launch launch;
	bool started, ended, timed_out;
	int status; /* exit status of the VMM, once it has ended by itself */
};

void run_launched_init(struct run_launched *l);
/* Starts the VMM or waits for it, and stores its process in *cfg. */
int run_launched_begin(struct run *r, struct attach_config *cfg, struct err *e);
/* Attaching has failed with *e: says so if it was as the VMM could not be executed, and ends the VMM. */
void run_launched_fail(struct run *r, struct err *e);
/* Puts what the VMM has written on the console. */
void run_launched_read(struct run_launched *l, struct console *c);
/* Returns when --timeout ends the run (CLOCK_MONOTONIC); UINT64_MAX: never. */
uint64_t run_launched_until(const struct run *r);
/* The samples have ended: ends the VMM, or takes over its exit status. */
void run_launched_end(struct run *r);
/* Returns the exit status that the VMM gives the run, 0 if it gives none. */
int run_launched_status(const struct run *r);
void run_launched_close(struct run_launched *l);

#endif

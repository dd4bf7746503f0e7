/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_alarm: notices that the guest of a run hangs or panics, and carries out --on-hang and --on-panic.
 *
 * Nothing stops the guest for this. Every few seconds the consumer thread reads the guest's memory and
 * judges it by the checks of `kvmprof why`, with the samples that the run takes anyway. Two judgements in a
 * row have to agree that something is wrong. While the kernel is not known, a guest hangs if all samples of
 * its vCPUs are in one page, with interrupts off and without an exit.
 *
 * The main thread calls all functions.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_ALARM_H
#define KVMPROF_PROFILE_RECORD_RUN_ALARM_H

#include "profile/record/pipeline/pipeline.h"
#include "profile/record/run/handler.h"
#include "profile/record/summary/panic.h"

#include <jansson.h>

struct run;
struct why;

/* The samples of a vCPU that have been in one page with interrupts off. */
struct run_alarm_spin {
	uint64_t since_ns, samples, exits;
	uint64_t page;	    /* address of the page; 0: the newest sample was not such a sample */
	uint64_t judged_ns; /* when a sample was last passed to the checks */
};

enum run_alarm_state { RUN_ALARM_IDLE, RUN_ALARM_POSTED, RUN_ALARM_DONE };

/* All zero: neither --on-hang nor --on-panic is given. */
struct run_alarm {
	struct run *run;
	struct why *why;	     /* used by the consumer thread while it runs */
	struct run_alarm_spin *spin; /* one for each vCPU; used by the consumer thread */
	struct pipeline_job job;
	atomic_int state; /* enum run_alarm_state */
	json_t *result;	  /* of the last judgement; NULL: the kernel is not known */
	char spins[256];  /* the evidence of run_alarm_spin; "": none */
	uint64_t hang_ns, period_ns, due_ns;
	unsigned int bad, well; /* judgements in a row */
	bool hang_told, panic_told;
	bool ends; /* an action requests the end of the run */
	struct handler handler;
	struct summary_hang found;
};

/* Starts the process for commands, before this process has other threads. Returns 0 or -errno. */
int run_alarm_begin(struct run *r, struct err *e);
/* Sets what the pipeline needs. Returns 0 or -errno. */
int run_alarm_start(struct run *r, struct err *e);
/* Carries out what is due at now_ns (CLOCK_MONOTONIC). Returns whether an action requests the end of the run. */
bool run_alarm_check(struct run *r, uint64_t now_ns);
/* Carries out what has not been carried out when the machine ended, after vm_join(). */
void run_alarm_finish(struct run *r, bool triple_fault);
/* Waits for commands, with a limit, and frees everything. Returns 0, or 1 after a message if one failed. */
int run_alarm_deinit(struct run *r);

#endif

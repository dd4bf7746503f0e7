/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * handler: executes the user's commands of --on-hang and --on-panic in a process of its own, which is
 * started before the run gives up its rights.
 *
 * A command is executed by /bin/sh with the rights and the environment with which kvmprof was started. Its
 * standard input is /dev/null, and its standard output is standard error. All functions are called by the
 * main thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_HANDLER_H
#define KVMPROF_PROFILE_RECORD_RUN_HANDLER_H

#include "base/helper.h"

enum handler_event { HANDLER_HANG, HANDLER_PANIC, HANDLER_EVENTS };

/* The event that a command is executed for. The process sees it as environment variables. */
struct handler_message {
	enum handler_event event; /* KVMPROF_EVENT: "hang" or "panic" */
	int pid;	/* KVMPROF_PID: the process that runs the guest; `kvmprof why` takes it */
	char cause[32]; /* KVMPROF_CAUSE: its name in docs/why.md; "": it is not known */
	char verdict[1024]; /* KVMPROF_VERDICT: one sentence in printable ASCII */
};

/* All zero: there is no process. */
struct handler {
	struct helper helper;
	const char *command[HANDLER_EVENTS]; /* NULL: none */
	bool started;
	unsigned int pending; /* commands that have not ended yet */
};

/*
 * Starts the process, for the commands in h->command. To be called while this process has no other threads.
 * Returns 0, or -errno with *e recorded. handler_end() is called in either case.
 */
int handler_start(struct handler *h, struct err *e);

/* Begins to execute the command of m->event. Returns 0, or -errno with *e recorded. */
int handler_execute(struct handler *h, const struct handler_message *m, struct err *e);

/*
 * Waits until all commands have ended, at most ms milliseconds, and ends the process. A command that still
 * runs is left running. Returns 0; -ETIMEDOUT if one still runs; or -EIO if one could not be executed or its exit
 * status is not 0; *e then describes it.
 */
int handler_end(struct handler *h, unsigned int ms, struct err *e);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rerun: repeats the run of an exact profile, by the command line in the profile, in a process of
 * its own. Its files are searched for where that command line says, from the current directory.
 *
 * All functions are called by the main thread. Those that return int return 0 or -errno with the
 * reason in *e.
 */
#ifndef KVMPROF_PROFILE_RECORD_DIVERGE_RERUN_H
#define KVMPROF_PROFILE_RECORD_DIVERGE_RERUN_H

#include "base/err.h"
#include "vmm/exact/exact.h"

#include <jansson.h>
#include <sys/types.h>

struct rerun {
	const char *profile; /* as the user has named it; borrowed */
	char **words;	     /* the command line, with words[0] "run"; owned */
	int nwords;
	json_t *engine; /* `engine` of the profile; owned */
	/* The run that is being made, or was made: */
	struct exact_trace plan; /* what the next run has to do; plan.fd is owned; -1: no trace */
	const char *output;	 /* path of its profile; NULL: none; borrowed */
	void *trace;		 /* the trace, mapped; NULL: none */
	json_t *again;		 /* `engine` of the run; owned; NULL: it did not get that far */
	pid_t pid;		 /* 0: it has ended */
	int status;		 /* exit status */
	int said, totals;	 /* memory files with its messages, and its totals as JSON */
};

/*
 * Reads the profile at path. Returns -EINVAL if it is not a profile of an exact run, or does not
 * contain its command line. rerun_close() is necessary in either case.
 */
int rerun_open(struct rerun *r, const char *path, struct err *e);
/* Frees what *r owns. */
void rerun_close(struct rerun *r);

/* Called periodically while both runs are under way. Returns whether they should be ended. */
typedef bool (*rerun_enough_fn)(const struct rerun side[2]);

/*
 * Makes both runs at the same time and waits for their ends. with_trace: plan's windows or steps
 * are traced. enough may be NULL. Fails if a run could not be made; *e then has its own message.
 */
int rerun_both(struct rerun side[2], bool with_trace, rerun_enough_fn enough, struct err *e);

/*
 * Compares the inputs of the last run with those of the profile: kernel, RAM disk and command line.
 * Returns -ESTALE if one has changed, which *e names.
 */
int rerun_check(const struct rerun *r, struct err *e);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rerun: the run of an exact profile once more, by the command line that the profile has, in a
 * process of its own. Its files are looked for where that command line says, from the current directory.
 *
 * Main thread only.
 */
#ifndef KVMPROF_PROFILE_RECORD_DIVERGE_RERUN_H
#define KVMPROF_PROFILE_RECORD_DIVERGE_RERUN_H

#include "base/err.h"
#include "vmm/exact/exact.h"

#include <jansson.h>
#include <sys/types.h>

struct rerun {
	const char *profile; /* as the user has named it; borrowed */
	char **words;	     /* of the command line; owned, with words[0] "run" */
	int nwords;
	json_t *engine; /* as the profile says; owned */
	/* Of the run that is made, or was. */
	struct exact_trace plan; /* what the next one is to do; plan.fd is owned: -1 for no trace */
	const char *output;	 /* where its profile goes; NULL: nowhere. Borrowed */
	void *trace;		 /* mapped; NULL: none */
	json_t *again;		 /* its engine; owned; NULL: it did not come so far */
	pid_t pid;		 /* 0: it has ended */
	int status;		 /* exit status */
	int said, totals;	 /* memory files: its messages, and its totals as JSON */
};

/* -EINVAL: it is no profile of an exact run, or does not say how it was made. Also then: rerun_close(). */
int rerun_open(struct rerun *r, const char *path, struct err *e);
void rerun_close(struct rerun *r);

/* Which of the runs that are made to end: asked now and then while they run. True: both are. */
typedef bool (*rerun_enough_fn)(const struct rerun side[2]);

/*
 * Both run at once, to their ends. with_trace: plan's windows or step are traced. enough may be
 * NULL. -errno: one could not be made; its own words are in e.
 */
int rerun_both(struct rerun side[2], bool with_trace, rerun_enough_fn enough, struct err *e);

/*
 * What was run is what the profile is of: kernel, RAM disk and command line. -ESTALE: e says which is
 * another one now. The last run's facts are needed.
 */
int rerun_check(const struct rerun *r, struct err *e);

#endif

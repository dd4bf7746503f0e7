/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tasks: names of the threads of a profile at a moment.
 *
 * Records must be added in order of time. A name is represented by a number; equal names have equal
 * numbers. The rules are perf's: a thread is identified by its tid only, a new one begins with its
 * parent's name, one without a name is ":TID", and tid 0 is "swapper". Names are made printable.
 * Not thread-safe: the caller serialises calls on one object.
 */
#ifndef KVMPROF_PROFILE_FORMAT_NAMES_TASKS_H
#define KVMPROF_PROFILE_FORMAT_NAMES_TASKS_H

#include "profile/format/perfdata/read.h"

#define TASKS_MAX_NAMES (4u << 20)
#define TASKS_MAX_NAME 64u /* bytes with the NUL; perf's own limit is 16 */

struct tasks;

/* Returns an empty object that tasks_destroy() frees; NULL if out of memory */
struct tasks *tasks_create(void);
/* Frees t; does nothing for NULL. */
void tasks_destroy(struct tasks *t);

/*
 * Applies a FORK, COMM or EPOCH record; ignores others. Returns 0, -ENOMEM, or -E2BIG beyond
 * TASKS_MAX_NAMES.
 */
int tasks_record(struct tasks *t, const struct perfdata_record *r, struct err *e);

/* Apply one change of such a record, with the same results. */
int tasks_comm(struct tasks *t, uint32_t tid, const char *comm, struct err *e);
int tasks_fork(struct tasks *t, uint32_t tid, uint32_t ptid, struct err *e);
/* Returns the number of threads that were named or forked. */
size_t tasks_threads(const struct tasks *t);

/* Returns the number of the name that a thread was given; 0 (the name "") if none. */
uint32_t tasks_known(const struct tasks *t, uint32_t tid);
/*
 * Returns the number of a thread's present name, a default name if it was given none. Without
 * memory it returns 0, the number of "".
 */
uint32_t tasks_name(struct tasks *t, uint32_t tid);
/*
 * Record of a filter by name: whether any sample passed, and the names of samples that did not.
 * Begins zeroed.
 */
#define TASKS_SEEN_MOST 12u
struct tasks_seen {
	bool met, more; /* more: some names did not fit */
	unsigned int n;
	uint32_t name[TASKS_SEEN_MOST];
};
/* Records that a sample of this name passed the filter or did not. */
void tasks_seen_add(struct tasks_seen *s, uint32_t name, bool passes);
/*
 * Writes "no sample has the command name 'X'; those of the samples are a, b, c" to out, cut to size
 * bytes with the NUL.
 */
void tasks_seen_text(const struct tasks_seen *s, const struct tasks *t, const char *wanted,
		     char *out, size_t size);

/* Returns the text of a name's number; "" for an unknown number. Valid until a name is added. */
const char *tasks_text(const struct tasks *t, uint32_t name);

#endif

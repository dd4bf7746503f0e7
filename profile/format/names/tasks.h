/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tasks: what the threads of a profile are called at a moment.
 *
 * Fed with the records in order of time. A name is a number (an index); equal
 * names have equal numbers. As perf has it: a thread is known by its tid alone,
 * a new one begins with its parent's name, one that nobody named is ":TID", and
 * tid 0 is "swapper". Names are made printable. One thread.
 */
#ifndef KVMPROF_PROFILE_FORMAT_NAMES_TASKS_H
#define KVMPROF_PROFILE_FORMAT_NAMES_TASKS_H

#include "profile/format/perfdata/read.h"

#define TASKS_MAX_NAMES (4u << 20)
#define TASKS_MAX_NAME 64u /* perf's own limit is 16 */

struct tasks;

struct tasks *tasks_create(void); /* NULL: no memory */
void tasks_destroy(struct tasks *t);

/* Take note of a FORK, EXIT, COMM or EPOCH record; others are ignored. */
int tasks_record(struct tasks *t, const struct perfdata_record *r, struct err *e);

/* What such a record says. */
int tasks_comm(struct tasks *t, uint32_t tid, const char *comm, struct err *e);
int tasks_fork(struct tasks *t, uint32_t tid, uint32_t ptid, struct err *e);
/* Threads that were named or forked. */
size_t tasks_threads(const struct tasks *t);

/* The number of the name that a thread was given; 0, which is "": none. */
uint32_t tasks_known(const struct tasks *t, uint32_t tid);
/* The number of a thread's present name. Never fails: without memory it is that of "". */
uint32_t tasks_name(struct tasks *t, uint32_t tid);
/*
 * The record of a filter by name: whether a sample passed, and the names of samples that did not. All zero at first.
 */
#define TASKS_SEEN_MOST 12u
struct tasks_seen {
	bool met, more; /* more: there are further names */
	unsigned int n;
	uint32_t name[TASKS_SEEN_MOST];
};
void tasks_see(struct tasks_seen *s, uint32_t name, bool passes);
/* Writes "no sample has the command name 'X'; those of the samples are a, b, c". */
void tasks_seen_text(const struct tasks_seen *s, const struct tasks *t, const char *wanted,
		     char *out, size_t size);

/* Valid until the next call. */
const char *tasks_text(const struct tasks *t, uint32_t name);

#endif

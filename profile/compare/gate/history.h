/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gate_history: the results of runs of many commits, in a directory to which files are only added.
 *
 * An entry is a file, DATE-HASH.json, where DATE is its time of creation (20261121T185748Z) and
 * HASH is a hash of its bytes. Entries are never changed, so the union of two directories is their
 * merge, and git merges them without a conflict. Files with other names are ignored.
 *
 *   { "version": 1, "time": "2026-11-21T18:57:48Z", "label": "commit",
 *     "runs": [ { "samples": n,
 *                 "metrics": { "time": 1.2e9, "share subtree do_exit": 0.12, ... },
 *                 "functions": [ [ "name", "dso", "mode", share ], ... ] }, ... ],
 *     "accepted": [ { "rule": "boot", "by": "who", "why": "text" }, ... ] }
 *
 * Names of metrics are gate_rule.key; functions are those whose own share is GATE_HISTORY_MIN_SHARE
 * or more. Unknown members are ignored. One thread uses a history at a time.
 */
#ifndef KVMPROF_PROFILE_COMPARE_GATE_HISTORY_H
#define KVMPROF_PROFILE_COMPARE_GATE_HISTORY_H

#include "base/err.h"
#include "profile/compare/gate/run.h"

#include <stddef.h>
#include <time.h>

#define GATE_HISTORY_MIN_SHARE 0.001
#define GATE_HISTORY_ENTRY_MAX (16u << 20) /* bytes of a file */
#define GATE_HISTORY_ENTRIES 100000u
#define GATE_HISTORY_LABEL 128u	    /* bytes */
#define GATE_HISTORY_ACCEPTED 16u   /* rules of an entry */
#define GATE_HISTORY_VALUES 200000u /* metrics and functions of an entry's runs */

/* A mean over an entry's runs; a function has the share 0 in runs without it. */
struct gate_history_value {
	const char *name;	/* name of the metric or function */
	const char *dso, *mode; /* NULL: it is a metric */
	double mean;
	unsigned int runs; /* runs that have it */
};

struct gate_history_entry {
	char *file; /* its name in the directory */
	char label[GATE_HISTORY_LABEL + 1];
	char time[32]; /* as in the file */
	unsigned int runs;
	struct gate_history_value *value; /* by mode (metrics first), name and DSO */
	size_t nvalues;
	struct gate_acceptance accepted[GATE_HISTORY_ACCEPTED];
	size_t naccepted;
	struct texts texts;
};

struct gate_history {
	struct gate_history_entry **entry; /* sorted by file name, so by time */
	size_t n;
	size_t refused; /* files with the name of an entry that are not valid */
	struct err why; /* error of the first of these */
};

/*
 * Parses the bytes of an entry; name is for messages. The caller frees *out with
 * gate_history_entry_destroy(). Returns 0, -EINVAL, -E2BIG or -ENOMEM.
 */
int gate_history_parse(struct gate_history_entry **out, const char *name, const char *text,
		       size_t len, struct err *e);
void gate_history_entry_destroy(struct gate_history_entry *x);

/*
 * Loads the newest `last` entries (0: all); the caller frees *out with gate_history_destroy().
 * Entries that are not valid are counted in (*out)->refused. Returns 0 or -errno, e.g. -ENOENT if
 * there is no directory.
 */
int gate_history_load(struct gate_history **out, const char *dir, size_t last, struct err *e);
void gate_history_destroy(struct gate_history *h);

/* The runs of one entry, usually those of one commit; borrowed during the call. */
struct gate_history_runs {
	const char *label;
	time_t when;
	const struct gate_rules *rules;
	struct gate_run *const *run;
	unsigned int n;
	const struct gate_acceptance *accepted; /* at most GATE_HISTORY_ACCEPTED */
	unsigned int naccepted;
};

#define GATE_HISTORY_FILE 64u /* bytes of a file name */
/*
 * Adds an entry with these runs, and creates the directory if needed. Copies the entry's file name
 * to `file` (may be NULL). An existing equal entry is not an error. Returns 0, -EINVAL (label,
 * time, or no runs) or another -errno.
 */
int gate_history_record(const char *dir, const struct gate_history_runs *runs,
			char file[GATE_HISTORY_FILE], struct err *e);

/*
 * Returns the value of this name, which x owns, or NULL if x lacks it. dso and mode are NULL for a
 * metric.
 */
const struct gate_history_value *gate_history_find(const struct gate_history_entry *x,
						   const char *name, const char *dso,
						   const char *mode);

#endif

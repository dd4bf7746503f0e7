/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ps_view: prints the task list from ps_json as a table.
 *
 * The list may come from another process, so it is checked: a member that is missing or of another
 * type counts as unknown. The functions work on their arguments only; any thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_CONTROL_PS_VIEW_H
#define KVMPROF_PROFILE_RECORD_CONTROL_PS_VIEW_H

#include "base/buf.h"
#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>

/* The most tasks of a list. */
#define PS_VIEW_MAX_TASKS (256u << 10)

enum ps_sort {
	PS_SORT_PID,
	PS_SORT_CPU,
	PS_SORT_TIME,
	PS_SORT_COMM,
	PS_SORT_STATE,
	PS_SORT_WCHAN,
	PS_SORT_VSZ,
	PS_SORT_RSS,
};

struct ps_view_options {
	enum ps_sort sort;
	bool stacks;	/* print a line for each frame */
	bool no_kernel; /* omit kernel threads */
};

/* Finds the order named "pid", "cpu", ...; returns false if there is none. */
bool ps_view_sort_find(const char *name, enum ps_sort *out);

/*
 * Appends the table to *out: a line for each task, and notes about missing data. now: an object
 * with the members of ps_json(); before: an earlier one, from which CPU shares are computed, or
 * NULL. Returns 0, -EINVAL if `now` is not such an object, or -ENOMEM.
 */
int ps_view_text(struct buf *out, json_t *now, const json_t *before,
		 const struct ps_view_options *opt, struct err *e);
/* Adds "cpu_percent" to each task of now, and "interval_ns". */
void ps_view_add_cpu(json_t *now, const json_t *before);

#endif

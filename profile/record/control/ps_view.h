/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ps_view: the task list that ps_json wrote, as a table.
 *
 * It may come from another process, and is checked: what is missing or of another type
 * counts as unknown. Any thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_CONTROL_PS_VIEW_H
#define KVMPROF_PROFILE_RECORD_CONTROL_PS_VIEW_H

#include "base/buf.h"
#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>

#define PS_VIEW_MAX_TASKS (256u << 10)

enum ps_sort { PS_SORT_PID, PS_SORT_CPU, PS_SORT_TIME, PS_SORT_COMM, PS_SORT_STATE, PS_SORT_WCHAN };

struct ps_view_options {
	enum ps_sort sort;
	bool stacks;	/* a line for each frame */
	bool no_kernel; /* leave kernel threads out */
};

/* "pid", "cpu", ...; false: none of them. */
bool ps_view_sort_find(const char *name, enum ps_sort *out);

/*
 * now: an object with what ps_json() puts; before: an earlier one, by which the shares of a
 * CPU are told, or NULL. Appends the table, a line of text for each task, and notes of what
 * is missing, to out. -EINVAL: now is no such object; -ENOMEM.
 */
int ps_view_text(struct buf *out, json_t *now, const json_t *before,
		 const struct ps_view_options *opt, struct err *e);
/* Adds "cpu_percent" to each task of now, and "interval_ns". */
void ps_view_add_cpu(json_t *now, const json_t *before);

#endif

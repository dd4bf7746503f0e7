/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sched_find: finds where a kernel without types stores a task's state and stack, by searching its
 * memory. Any thread.
 */
#ifndef KVMPROF_SYMBOLIZER_LINUX_SCHED_FIND_H
#define KVMPROF_SYMBOLIZER_LINUX_SCHED_FIND_H

#include "symbolizer/linux/sched.h"

/*
 * Finds the offsets of state and sp, each only if all kernel threads agree on one place. task:
 * from linux_task_from_content(), with its list of tasks. text: the kernel's code [start, end).
 * Returns 0, even if nothing is certain, or -ENOMEM.
 */
int linux_sched_from_content(struct linux_sched_layout *out, const struct linux_task_layout *task,
			     const struct memory *m, const uint64_t text[2], struct err *e);

#endif

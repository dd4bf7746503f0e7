/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * task_find: finds where a kernel without types stores the members of a task, by searching its
 * memory. Any thread.
 */
#ifndef KVMPROF_SYMBOLIZER_LINUX_TASK_FIND_H
#define KVMPROF_SYMBOLIZER_LINUX_TASK_FIND_H

#include "symbolizer/linux/task.h"

/*
 * Finds the offsets of the members; out->init_task must be set. Returns 0; -ENOENT with the
 * reason, which may change as the guest continues booting; or -ENOMEM.
 */
int linux_task_from_content(struct linux_task_layout *out, const struct memory *m, struct err *e);

#endif

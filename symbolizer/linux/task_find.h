/* SPDX-License-Identifier: GPL-2.0-or-later */
/* task_find: finds where a kernel without types keeps the members of a task, in its memory. */
#ifndef KVMPROF_SYMBOLIZER_LINUX_TASK_FIND_H
#define KVMPROF_SYMBOLIZER_LINUX_TASK_FIND_H

#include "symbolizer/linux/task.h"

/*
 * The members' offsets; out->init_task is set already. -ENOENT with the reason, which may change
 * as the guest boots on; -ENOMEM.
 */
int linux_task_from_content(struct linux_task_layout *out, const struct memory *m, struct err *e);

#endif

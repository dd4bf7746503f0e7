/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * module_find: finds where a kernel without types stores its modules, by searching its memory. Any
 * thread.
 */
#ifndef KVMPROF_SYMBOLIZER_LINUX_MODULE_FIND_H
#define KVMPROF_SYMBOLIZER_LINUX_MODULE_FIND_H

#include "symbolizer/linux/module.h"

/*
 * Finds the offsets from the loaded modules, without types. Returns 0, or -ENOENT with the reason,
 * and *l unchanged, if none is loaded or more than one place fits; or -ENOMEM. Build ids stay
 * unknown.
 */
int linux_module_find(struct linux_module_layout *l, const struct memory *m, struct err *e);

#endif

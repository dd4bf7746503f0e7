/* SPDX-License-Identifier: GPL-2.0-or-later */
/* module_find: finds where a kernel without types keeps its modules, in its memory. */
#ifndef KVMPROF_SYMBOLIZER_LINUX_MODULE_FIND_H
#define KVMPROF_SYMBOLIZER_LINUX_MODULE_FIND_H

#include "symbolizer/linux/module.h"

/*
 * Without types: out of what modules that are loaded look like. -ENOENT with the reason when
 * none is, or more than one place fits; l is as it was. Build ids stay unknown.
 */
int linux_module_find(struct linux_module_layout *l, const struct memory *m, struct err *e);

#endif

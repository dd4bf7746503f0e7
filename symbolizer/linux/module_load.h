/* SPDX-License-Identifier: GPL-2.0-or-later */
/* module_load: the symbols and the ORC tables of a kernel's module. */
#ifndef KVMPROF_SYMBOLIZER_LINUX_MODULE_LOAD_H
#define KVMPROF_SYMBOLIZER_LINUX_MODULE_LOAD_H

#include "symbolizer/linux/module.h"

/*
 * Read a listed module's symbols and ORC tables. What can't be had stays NULL, which
 * e explains: -ENOENT no symbols, -EINVAL, -E2BIG, -ENOMEM; ORC is tried regardless,
 * and only told about (0 or an error) where the kernel has any.
 */
int linux_module_load(const struct linux_module_layout *l, const struct memory *m,
		      struct linux_module *mod, struct err *e);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * module_load: reads the symbols and the ORC tables of a kernel module. Any thread, one at a time
 * per module.
 */
#ifndef KVMPROF_SYMBOLIZER_LINUX_MODULE_LOAD_H
#define KVMPROF_SYMBOLIZER_LINUX_MODULE_LOAD_H

#include "symbolizer/linux/module.h"

/*
 * Reads a listed module's symbols and ORC tables into *mod, which owns them. A part that is not
 * available stays NULL, and *e explains it: -ENOENT for no symbols, -EINVAL, -E2BIG or -ENOMEM.
 * ORC is tried in any case, and its errors are reported only if the kernel has ORC tables. Returns
 * 0 if everything was read.
 */
int linux_module_load(const struct linux_module_layout *l, const struct memory *m,
		      struct linux_module *mod, struct err *e);

#endif

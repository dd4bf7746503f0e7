/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * display_name: what people are shown for a symbol.
 *
 * Demangles each symbol once. A symbol is known by its address in memory, so the
 * tables must not be freed before the names are. Kernel names stay as they are,
 * as in perf, unless they are asked for. One thread.
 */
#ifndef KVMPROF_SYMBOLIZER_CORE_DISPLAY_NAME_H
#define KVMPROF_SYMBOLIZER_CORE_DISPLAY_NAME_H

#include "base/table.h"
#include "symbolizer/core/symtab.h"

#include <stdbool.h>

struct display_names {
	bool demangle;	      /* set before the first use; --no-demangle: false */
	bool demangle_kernel; /* too; perf's --demangle-kernel */
	struct table entries; /* struct display_entry */
};

/* No memory is needed yet: { .demangle = true } will do as well. */
void display_names_init(struct display_names *d, bool demangle, bool demangle_kernel);
void display_names_deinit(struct display_names *d);

/*
 * Never NULL. Valid until deinit and as long as the symbol is. Without memory, and
 * where d is NULL, it is the symbol's own name.
 */
const char *display_name(struct display_names *d, const struct symbol *s, bool kernel);

#endif

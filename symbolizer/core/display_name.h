/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * display_name: what people are shown for a symbol.
 *
 * Demangles each symbol once. A symbol is known by its address in memory, so the
 * tables must not be freed before the names are. Kernel names are not demangled,
 * as in perf, unless that is asked for. The ".llvm.NUMBER" of local symbols that
 * clang's ThinLTO made global goes away, as in the kernel's own messages: with it
 * a function would have another name in each build. One thread.
 */
#ifndef KVMPROF_SYMBOLIZER_CORE_DISPLAY_NAME_H
#define KVMPROF_SYMBOLIZER_CORE_DISPLAY_NAME_H

#include "base/table.h"
#include "symbolizer/core/symtab.h"

#include <stdbool.h>

/* Whose code a name or an address is of. The values are those of a bool `kernel`. */
enum names_of { NAMES_PROGRAM = false, NAMES_KERNEL = true };

enum demangle_which {
	DEMANGLE_NONE,	   /* --no-demangle: names as they are in the symbol table */
	DEMANGLE_PROGRAMS, /* perf's default */
	DEMANGLE_ALL,	   /* perf's --demangle-kernel */
};

struct display_names {
	enum demangle_which which;
	struct table entries; /* struct display_entry */
};

void display_names_init(struct display_names *d, enum demangle_which which);
void display_names_deinit(struct display_names *d);

/*
 * Never NULL. Valid until deinit and as long as the symbol is. Without memory, and
 * where d is NULL, it is the symbol's own name.
 */
const char *display_name(struct display_names *d, const struct symbol *s, enum names_of whose);

#endif

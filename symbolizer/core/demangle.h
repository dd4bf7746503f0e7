/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * demangle: names of C++ (Itanium ABI) and Rust (legacy and v0) as people write them.
 *
 * libiberty does it, with the options that perf uses (demangle_sym in
 * tools/perf/util/symbol-elf.c, Linux 6.1): no parameters, no return types, and
 * what follows a dot (".cold", ".isra.0") goes away. "@plt" stays, as in perf.
 *
 * Names come from guests: libiberty's limit on recursion is left on, and a name
 * that is longer, or would become longer, than the caps below is left as it is.
 * Any thread.
 */
#ifndef KVMPROF_SYMBOLIZER_CORE_DEMANGLE_H
#define KVMPROF_SYMBOLIZER_CORE_DEMANGLE_H

#include "base/table.h"
#include "symbolizer/core/symtab.h"
#include <stdbool.h>

#define DEMANGLE_MAX_NAME 4096u
/* Few bytes can mean many: each may repeat all that came before. */
#define DEMANGLE_MAX_RESULT (64u << 10)

/* The demangled name, malloc'd; NULL: it is not mangled, or no memory. */
char *demangle(const char *name);

/*
 * Names of symbols as people are shown them.
 *
 * Demangles each symbol once. A symbol is known by its address in memory, so the
 * tables must not be freed before the names are. Kernel names are not demangled,
 * as in perf, unless that is asked for. The ".llvm.NUMBER" of local symbols that
 * clang's ThinLTO made global goes away, as in the kernel's own messages: with it
 * a function would have another name in each build. One thread.
 */

/* The owner of the code that a name or an address is of. The values are those of a bool `kernel`. */
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

void demangle_names_init(struct display_names *d, enum demangle_which which);
void demangle_names_deinit(struct display_names *d);

/*
 * Never NULL. Valid until deinit and as long as the symbol is. Without memory, and
 * where d is NULL, it is the symbol's own name.
 */
const char *demangle_shown(struct display_names *d, const struct symbol *s, enum names_of whose);

#endif

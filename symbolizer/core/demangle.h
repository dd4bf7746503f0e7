/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * demangle: converts mangled names of C++ (Itanium ABI) and Rust (legacy and v0) to their source
 * form.
 *
 * It uses libiberty with the options of perf (demangle_sym in tools/perf/util/symbol-elf.c, Linux
 * 6.1): no parameters, no return types, and a suffix after a dot (".cold", ".isra.0") is removed.
 * "@plt" is kept, as in perf.
 *
 * Names come from guests: libiberty's recursion limit stays enabled, and a name that is longer
 * than the limits below, or would become longer, is not demangled. Any thread.
 */
#ifndef KVMPROF_SYMBOLIZER_CORE_DEMANGLE_H
#define KVMPROF_SYMBOLIZER_CORE_DEMANGLE_H

#include "base/table.h"
#include "symbolizer/core/symtab.h"
#include <stdbool.h>

#define DEMANGLE_MAX_NAME 4096u /* bytes */
/*
 * Limit for the result in bytes. A short name can expand without bound, because each part may
 * repeat everything before it.
 */
#define DEMANGLE_MAX_RESULT (64u << 10)

/*
 * Returns the demangled name, which the caller frees with free(), or NULL if it is not mangled,
 * too long, or out of memory.
 */
char *demangle(const char *name);

/*
 * The names of symbols as they are displayed.
 *
 * Each symbol is demangled once. A symbol is identified by its address in memory, so the symbol
 * tables must outlive the names. Kernel names are demangled only on request, as in perf. The
 * ".llvm.NUMBER" of local symbols that clang's ThinLTO made global is removed, as in the kernel's
 * own messages: with it, a function would have another name in each build. Not thread-safe: one
 * thread per object.
 */

/*
 * The owner of the code to which a name or an address belongs. The values are those of a bool
 * `kernel`.
 */
enum names_of { NAMES_PROGRAM = false, NAMES_KERNEL = true };

enum demangle_which {
	DEMANGLE_NONE,	   /* --no-demangle: names as in the symbol table */
	DEMANGLE_PROGRAMS, /* perf's default */
	DEMANGLE_ALL,	   /* perf's --demangle-kernel */
};

struct display_names {
	enum demangle_which which;
	struct table entries; /* struct display_entry */
};

/* Initialises *d, empty. */
void demangle_names_init(struct display_names *d, enum demangle_which which);
/* Frees all names of d. */
void demangle_names_deinit(struct display_names *d);

/*
 * Returns the display name of s, which is never NULL and belongs to d or s: valid until
 * demangle_names_deinit() and as long as s. If out of memory, or if d is NULL, it is the symbol's
 * own name.
 */
const char *demangle_shown(struct display_names *d, const struct symbol *s, enum names_of whose);

#endif

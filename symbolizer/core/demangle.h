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

#define DEMANGLE_MAX_NAME 4096u
/* Few bytes can mean many: each may repeat all that came before. */
#define DEMANGLE_MAX_RESULT (64u << 10)

/* The demangled name, malloc'd; NULL: it is not mangled, or no memory. */
char *demangle(const char *name);

#endif

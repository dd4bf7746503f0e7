/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * library: loads a shared library at run time that only some runs need.
 *
 *     #define FUNCTIONS(X) X(curl_easy_init) X(curl_easy_perform)
 *     struct functions { FUNCTIONS(LIBRARY_MEMBER) };
 *     static const char *const names[] = { FUNCTIONS(LIBRARY_NAME) };
 *
 * Any thread may call it before the sandbox has confined it, because files are opened.
 */
#ifndef KVMPROF_BASE_LIBRARY_H
#define KVMPROF_BASE_LIBRARY_H

#include "base/err.h"

#include <stddef.h>

#define LIBRARY_MEMBER(f) __typeof__(&f) f;
#define LIBRARY_NAME(f) #f,

struct library {
	const char *soname;
	const char *what; /* beginning of the error message */
	const char *hint; /* advice if the library is not installed; NULL: none */
	/* Names of the functions to look up, nnames of them. */
	const char *const *names;
	size_t nnames;
};

/*
 * Loads the library and sets functions[i] to the function names[i]. The library is never unloaded,
 * because some have threads and handlers of their own. Returns 0, or -ENOENT with *e recorded if
 * the library or a function is missing.
 */
int library_load(const struct library *lib, void **functions, struct err *e);

#endif

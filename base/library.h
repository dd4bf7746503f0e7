/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * library: a shared library that only some runs need, loaded when one does.
 *
 *     #define FUNCTIONS(X) X(curl_easy_init) X(curl_easy_perform)
 *     struct functions { FUNCTIONS(LIBRARY_MEMBER) };
 *     static const char *const names[] = { FUNCTIONS(LIBRARY_NAME) };
 *
 * Any thread; not one that the sandbox binds already, as files are opened.
 */
#ifndef KVMPROF_BASE_LIBRARY_H
#define KVMPROF_BASE_LIBRARY_H

#include "base/err.h"

#include <stddef.h>

#define LIBRARY_MEMBER(f) __typeof__(&f) f;
#define LIBRARY_NAME(f) #f,

struct library {
	const char *soname;
	const char *what; /* the message begins so */
	const char *hint; /* what to do where it is not installed; NULL: nothing */
	const char *const *names;
	size_t nnames;
};

/*
 * Sets functions[i] to the function of names[i]. The library is never unloaded: some have threads
 * and handlers of their own. -ENOENT: no such library, or it lacks a function.
 */
int library_load(const struct library *lib, void **functions, struct err *e);

#endif

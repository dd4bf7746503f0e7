/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * reporter: how library code reports to the user while it works: notes, warnings, the end of a run.
 *
 * Library code prints nothing itself. The command that owns the process hands down a reporter, which
 * decides where the text goes. An error that ends an operation is a struct err instead (base/err.h).
 * A NULL reporter discards what is reported.
 */
#ifndef KVMPROF_BASE_REPORTER_H
#define KVMPROF_BASE_REPORTER_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

struct reporter {
	/* Prints the text, which ends with a newline. Any thread may call it. */
	void (*print)(void *ctx, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
	void *ctx;
};

/* Reports whole lines, each with its newline. */
void reporter_printf(const struct reporter *to, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Returns a stream that reports each line written to it, for functions that print to a FILE. The
 * caller closes it with fclose(). Returns NULL if out of memory.
 */
FILE *reporter_open(const struct reporter *to);

/*
 * Writes to standard error with write(2). This is for the places that a reporter cannot serve: signal
 * handlers, and processes that are confined or about to end. It is async-signal-safe.
 */
void reporter_write_raw(const char *text, size_t len);

#endif

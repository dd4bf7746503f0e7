/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * reporter: how library code reports notes and warnings to the user while it works.
 *
 * Library code prints nothing itself. The command that owns the process passes a reporter down,
 * which decides where the text goes. An error that ends an operation is a struct err instead
 * (base/err.h). A NULL reporter discards the text.
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

/* Reports one or more complete lines, each with its newline. Any thread may call it. */
void reporter_printf(const struct reporter *to, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Returns a stream that reports each line written to it, for functions that print to a FILE. The
 * caller closes it with fclose(). Returns NULL if out of memory.
 */
FILE *reporter_open(const struct reporter *to);

/*
 * Writes to standard error with write(2), for places where a reporter cannot be used: signal
 * handlers, and processes that are confined or about to end. Async-signal-safe; errors are ignored.
 */
void reporter_write_raw(const char *text, size_t len);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/reporter.h"

#include <sys/types.h>
#include <unistd.h>

void reporter_printf(const struct reporter *to, const char *fmt, ...)
{
	va_list ap;

	if (!to)
		return;
	va_start(ap, fmt);
	to->print(to->ctx, fmt, ap);
	va_end(ap);
}

static ssize_t reporter_write(void *to, const char *text, size_t len)
{
	reporter_printf(to, "%.*s", (int)len, text);
	return (ssize_t)len;
}

FILE *reporter_open(const struct reporter *to)
{
	FILE *f = fopencookie((void *)to, "w", (cookie_io_functions_t){ .write = reporter_write });

	if (f)
		setvbuf(f, NULL, _IOLBF, BUFSIZ);
	return f;
}

void reporter_write_raw(const char *text, size_t len)
{
	(void)!write(STDERR_FILENO, text, len);
}

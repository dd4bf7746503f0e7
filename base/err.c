/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* Names and strings from files and guests may contain terminal control sequences. */
static void make_one_line(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
}

int err_set(struct err *e, int code, const char *fmt, ...)
{
	va_list ap;

	if (e && e->code == 0) {
		e->code = code;
		va_start(ap, fmt);
		vsnprintf(e->text, sizeof(e->text), fmt, ap);
		va_end(ap);
		make_one_line(e->text);
	}
	return -code;
}

int err_nomem(struct err *e)
{
	return err_set(e, ENOMEM, "out of memory");
}

void err_clear(struct err *e)
{
	e->code = 0;
	e->text[0] = '\0';
}

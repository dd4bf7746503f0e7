/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A guest's console: lines stay within their size and hold nothing that a terminal obeys. */
#include "tests/fuzz/fuzz.h"

#include "profile/record/console/marks.h"

#include <stdlib.h>
#include <string.h>

static uint64_t count;

static void found(void *ctx, const struct console_mark *mark, const char *name, size_t len,
		  uint64_t time_ns)
{
	char clean[MARKER_NAME];

	(void)ctx;
	(void)mark;
	(void)time_ns;
	if (len > CONSOLE_LINE_MAX)
		abort();
	markers_clean_name(clean, name, len);
	for (const char *s = clean; *s; s++)
		if (*s < ' ' || *s > '~')
			abort();
	if (!*clean)
		abort();
	count++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const regex[] = { "login: $", "^[^ ]* .*x?", "a=(b|c)+", "^$" };
	struct console_marks m = { 0 };
	uint64_t lines = 0;

	count = 0;
	for (size_t i = 0; i < sizeof(regex) / sizeof(regex[0]); i++)
		if (console_marks_add(&m, MARKER_CONSOLE, regex[i], NULL))
			abort();
	for (size_t i = 0; i < size; i++) {
		console_marks_put(&m, data[i], i, found, NULL);
		lines += data[i] == '\n' || data[i] == '\r';
		if (data[i] == ' ')
			console_marks_flush(&m, i, found, NULL);
		if (m.lines.n > CONSOLE_LINE_MAX || strlen(m.lines.text) != m.lines.n ||
		    strpbrk(m.lines.text, "\n\r\033\b\177"))
			abort();
	}
	/* each expression once in a line */
	if (count > (lines + 1) * m.n)
		abort();
	console_marks_deinit(&m);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/console/marks.h"

#include <errno.h>
#include <string.h>

/* Length of NAME in NAME=REGEX; -1: there is none. */
static int name_length(const char *text)
{
	size_t n =
		strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.");

	return text[n] == '=' && n < MARKER_NAME ? (int)n : -1;
}

int console_marks_add(struct console_marks *m, enum marker_kind kind, const char *text,
		      struct err *e)
{
	struct console_mark *k = &m->mark[m->n];
	int n = kind == MARKER_CONSOLE ? name_length(text) : -1, ret;
	const char *regex = text + n + 1;
	char why[128];

	if (m->n == CONSOLE_MARKS_MAX)
		return err_set(e, EINVAL, "'%s': more than %u expressions for the console", text,
			       CONSOLE_MARKS_MAX);
	*k = (struct console_mark){ .kind = kind, .text = text, .named = n > 0 };
	if (n > 0)
		memcpy(k->name, text, (size_t)n);
	/* An empty one would match each line. */
	if (!*regex || strlen(regex) > CONSOLE_REGEX_MAX)
		return err_set(e, EINVAL, "'%.60s': an expression of 1 to %u bytes is needed", text,
			       CONSOLE_REGEX_MAX);
	ret = regcomp(&k->regex, regex, REG_EXTENDED);
	if (ret) {
		regerror(ret, &k->regex, why, sizeof(why));
		return err_set(e, EINVAL, "bad expression '%s': %s", regex, why);
	}
	m->n++;
	return 0;
}

void console_marks_deinit(struct console_marks *m)
{
	for (unsigned int i = 0; i < m->n; i++)
		regfree(&m->mark[i].regex);
	m->n = 0;
}

static void marks_look(struct console_marks *m, uint64_t time_ns, console_marks_found *found,
		       void *ctx)
{
	for (unsigned int i = 0; i < m->n; i++) {
		struct console_mark *k = &m->mark[i];
		const char *text = m->lines.text;
		regmatch_t at;

		if (k->matched || regexec(&k->regex, text, 1, &at, 0) != 0)
			continue;
		k->matched = true;
		k->count++;
		if (k->named)
			found(ctx, k, k->name, strlen(k->name), time_ns);
		else
			found(ctx, k, text + at.rm_so, (size_t)(at.rm_eo - at.rm_so), time_ns);
	}
}

void console_marks_put(struct console_marks *m, uint8_t byte, uint64_t time_ns,
		       console_marks_found *found, void *ctx)
{
	m->bytes++;
	m->checked = false;
	if (!console_lines_put(&m->lines, byte))
		return;
	marks_look(m, time_ns, found, ctx);
	for (unsigned int i = 0; i < m->n; i++)
		m->mark[i].matched = false;
}

void console_marks_quiet(struct console_marks *m, uint64_t time_ns, console_marks_found *found,
			 void *ctx)
{
	if (m->checked || !console_lines_pending(&m->lines))
		return;
	m->checked = true;
	marks_look(m, time_ns, found, ctx);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/console/marks.h"

#include <errno.h>
#include <string.h>

/* -- lines ------------------------------------------------------------------------------ */

/* Inside of an escape sequence (ECMA-48, 5.3 and 5.4). */
enum {
	TEXT,
	ESCAPE,	      /* ESC was received */
	INTERMEDIATE, /* then bytes 20 to 2f: one of 30 to 7e ends it */
	CSI,	      /* parameters, then one of 40 to 7e */
	STRING,	      /* OSC, DCS, PM, APC, SOS: up to ST (ESC \) or BEL */
	STRING_ESCAPE,
};

/* Returns false if the byte is text. */
static bool escape(struct console_lines *l, uint8_t byte)
{
	switch (l->escape) {
	case ESCAPE:
		if (byte == '[')
			l->escape = CSI;
		else if (byte == ']' || byte == 'P' || byte == '^' || byte == '_' || byte == 'X')
			l->escape = STRING;
		else if (byte >= 0x20 && byte <= 0x2f)
			l->escape = INTERMEDIATE;
		else if (byte != 0x1b)
			l->escape = TEXT;
		return true;
	case INTERMEDIATE:
		if (byte < 0x20 || byte > 0x2f)
			l->escape = TEXT;
		return true;
	case CSI:
		if (byte >= 0x40 && byte <= 0x7e)
			l->escape = TEXT;
		return true;
	case STRING_ESCAPE:
		if (byte != 0x1b)
			l->escape = byte == '\\' ? TEXT : STRING;
		return true;
	case STRING:
		if (byte == 0x07)
			l->escape = TEXT;
		else if (byte == 0x1b)
			l->escape = STRING_ESCAPE;
		return true;
	default:
		if (byte != 0x1b)
			return false;
		l->escape = ESCAPE;
		return true;
	}
}

static bool end_line(struct console_lines *l)
{
	l->ended = true;
	l->escape = TEXT;
	return true;
}

bool console_lines_put(struct console_lines *l, uint8_t byte)
{
	bool after_cr = l->after_cr;

	if (l->ended) {
		l->ended = false;
		l->n = 0;
		l->text[0] = '\0';
	}
	l->after_cr = byte == '\r';
	if (byte == '\n')
		/* The preceding CR has ended the line. */
		return after_cr ? false : end_line(l);
	if (byte == '\r') {
		if (l->n)
			return end_line(l);
		/*
		 * The second CR of "\r\r\n" does not end a line of its own, unless text preceded
		 * it.
		 */
		l->after_cr = after_cr;
		l->escape = TEXT;
		return false;
	}
	if (escape(l, byte))
		return false;
	if (byte == '\b' && l->n) {
		l->text[--l->n] = '\0';
		return false;
	}
	if ((byte < 0x20 && byte != '\t') || byte == 0x7f)
		return false;
	if (l->n == CONSOLE_LINE_MAX) {
		l->capped++;
		return false;
	}
	l->text[l->n++] = (char)byte;
	l->text[l->n] = '\0';
	return false;
}

/* -- marks ------------------------------------------------------------------------------ */

/* Returns the length of NAME in NAME=REGEX, or -1 if there is none. */
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

void console_marks_flush(struct console_marks *m, uint64_t time_ns, console_marks_found *found,
			 void *ctx)
{
	if (m->checked || !console_lines_pending(&m->lines))
		return;
	m->checked = true;
	marks_look(m, time_ns, found, ctx);
}

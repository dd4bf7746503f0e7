/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/console/lines.h"

/* Inside of an escape sequence (ECMA-48, 5.3 and 5.4). */
enum {
	TEXT,
	ESCAPE,	      /* ESC has come */
	INTERMEDIATE, /* ... and bytes 20 to 2f: one of 30 to 7e ends it */
	CSI,	      /* parameters, then one of 40 to 7e */
	STRING,	      /* OSC, DCS, PM, APC, SOS: up to ST (ESC \) or BEL */
	STRING_ESCAPE,
};

/* False: the byte is text. */
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
		/* The CR before it has ended the line. */
		return after_cr ? false : end_line(l);
	if (byte == '\r') {
		if (l->n)
			return end_line(l);
		/* Of "\r\r\n" and the like: no line of its own, unless there was one before. */
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

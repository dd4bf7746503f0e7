/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * console_marks: expressions that are matched against lines of the console.
 *
 * POSIX extended regular expressions, in the C locale; a rule matches a line once, when it is
 * complete or while it is unfinished (a prompt). No I/O. Not thread-safe: one thread uses an
 * object.
 */
#ifndef KVMPROF_PROFILE_RECORD_CONSOLE_MARKS_H
#define KVMPROF_PROFILE_RECORD_CONSOLE_MARKS_H

#include "base/err.h"
#include "profile/format/sink/markers.h"

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The bytes of a serial console as lines of text.
 *
 * Bytes that a terminal would not show are removed: escape sequences (ECMA-48: CSI, and strings
 * such as OSC up to ST or BEL), and control characters except tab; backspace removes a character. A
 * line ends at LF, at CR LF, or at a CR that another byte follows (progress that overwrites
 * itself). The guest is hostile: a line keeps CONSOLE_LINE_MAX bytes, later ones are dropped, and
 * no escape sequence extends beyond its line.
 */
#define CONSOLE_LINE_MAX 1024u

/* All zero is the initial state. */
struct console_lines {
	char text[CONSOLE_LINE_MAX + 1]; /* the current line, terminated, without a NUL inside */
	size_t n;
	uint8_t escape; /* state of an escape sequence; the enum is in marks.c */
	bool ended;	/* text is complete: the next byte begins another line */
	bool after_cr;
	uint64_t capped; /* number of bytes dropped */
};

/* Adds a byte. Returns true if the line in text is complete; it stays until the next call. */
bool console_lines_put(struct console_lines *l, uint8_t byte);

/* Returns whether text contains an unfinished line. */
static inline bool console_lines_pending(const struct console_lines *l)
{
	return l->n && !l->ended;
}

/* -- marks ------------------------------------------------------------------------------ */

#define CONSOLE_MARKS_MAX 16u
#define CONSOLE_REGEX_MAX 1000u /* bytes of an expression */

struct console_mark {
	enum marker_kind kind;
	const char *text; /* as given, borrowed */
	char name[MARKER_NAME];
	bool named; /* `name` is valid; otherwise the matched text is the name */
	regex_t regex;
	bool matched; /* it has matched the current line */
	uint64_t count;
};

struct console_marks {
	struct console_mark mark[CONSOLE_MARKS_MAX];
	unsigned int n;
	struct console_lines lines;
	bool checked; /* the unfinished line was matched as it is now */
	uint64_t bytes;
};

/*
 * Called for a match; name has len bytes of the matched text, or of the mark's name, and is valid
 * during the call only.
 */
typedef void console_marks_found(void *ctx, const struct console_mark *mark, const char *name,
				 size_t len, uint64_t time_ns);

/*
 * Adds an expression. text is [NAME=]REGEX for MARKER_CONSOLE, else REGEX; NAME consists of
 * letters, digits, "_", "-" and "."; an empty NAME is none, for expressions that begin with such a
 * prefix. text is borrowed. Returns 0, or -EINVAL with the reason in *e if it is not an expression
 * or there are too many.
 */
int console_marks_add(struct console_marks *m, enum marker_kind kind, const char *text,
		      struct err *e);
/* Frees the expressions. */
void console_marks_deinit(struct console_marks *m);

/* Adds a byte, which came at time_ns, and calls found() for each match. */
void console_marks_put(struct console_marks *m, uint8_t byte, uint64_t time_ns,
		       console_marks_found *found, void *ctx);
/*
 * Matches the unfinished line, whose last byte came at time_ns, because the console has been quiet.
 */
void console_marks_flush(struct console_marks *m, uint64_t time_ns, console_marks_found *found,
			 void *ctx);

#endif

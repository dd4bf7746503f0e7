/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * console_marks: expressions that lines of the console are looked through for.
 *
 * Pure: bytes in, matches out. POSIX extended expressions, in the C locale; a rule matches
 * a line once, whole or while it is unfinished (a prompt).
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
 * What a terminal would not show is left out: escape sequences (ECMA-48: CSI, and strings
 * such as OSC up to ST or BEL), control characters but tab; backspace takes a character
 * back. A line ends at LF, at CR LF, or at a CR that something else follows (progress that
 * overwrites itself). The guest is hostile: a line keeps CONSOLE_LINE_MAX bytes, what comes
 * beyond is dropped, and no sequence outlives its line.
 */
#define CONSOLE_LINE_MAX 1024u

/* All zero is the beginning. */
struct console_lines {
	char text[CONSOLE_LINE_MAX + 1]; /* the line so far, terminated; no NUL inside */
	size_t n;
	uint8_t escape; /* enum in the .c */
	bool ended;	/* text is complete: the next byte begins another line */
	bool after_cr;
	uint64_t capped; /* bytes dropped in all */
};

/* True: the line in text is complete, and stays until the next call. */
bool console_lines_put(struct console_lines *l, uint8_t byte);

/* Is there an unfinished line in text? */
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
	bool named; /* else the matched text is the name */
	regex_t regex;
	bool matched; /* this line */
	uint64_t count;
};

struct console_marks {
	struct console_mark mark[CONSOLE_MARKS_MAX];
	unsigned int n;
	struct console_lines lines;
	bool checked; /* the unfinished line as it stands */
	uint64_t bytes;
};

/* name has len bytes of the matched text, or of the mark's name. */
typedef void console_marks_found(void *ctx, const struct console_mark *mark, const char *name,
				 size_t len, uint64_t time_ns);

/*
 * text: [NAME=]REGEX for MARKER_CONSOLE, else REGEX; NAME of letters, digits, "_", "-"
 * and "."; an empty one is none, for expressions that begin like that. Borrowed. -EINVAL
 * with e set when it is no expression.
 */
int console_marks_add(struct console_marks *m, enum marker_kind kind, const char *text,
		      struct err *e);
void console_marks_deinit(struct console_marks *m);

/* One more byte, which came at time_ns. */
void console_marks_put(struct console_marks *m, uint8_t byte, uint64_t time_ns,
		       console_marks_found *found, void *ctx);
/* The console has been quiet: look at the unfinished line, whose last byte came at time_ns. */
void console_marks_quiet(struct console_marks *m, uint64_t time_ns, console_marks_found *found,
			 void *ctx);

#endif

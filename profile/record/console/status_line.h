/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * status_line: one line at the bottom of a terminal that shows the progress of a run.
 *
 * It is on standard error, below the last output, and only while the cursor is at the start of a
 * line: within a line of the guest (a prompt) it is not drawn. A writer to that terminal hides it
 * first; the next status_line_show() draws it again. It is cut to the terminal's width, which is
 * read each time, so that a resized window needs no signal.
 *
 * Not thread-safe: console.c serialises the calls while the guest runs.
 */
#ifndef KVMPROF_PROFILE_RECORD_CONSOLE_STATUS_LINE_H
#define KVMPROF_PROFILE_RECORD_CONSOLE_STATUS_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STATUS_LINE_MAX 256u

struct status_line {
	int fd;		    /* -1: there is none */
	unsigned int shown; /* columns that are drawn; 0: none */
};

/*
 * Initializes a status line on fd, which is borrowed. If that is not a terminal, or TERM is "dumb",
 * the line is never drawn.
 */
void status_line_init(struct status_line *s, int fd);
/* Draws the text, which is printable ASCII; the part that does not fit is cut. */
void status_line_show(struct status_line *s, const char *text);
/* Erases the line, if it is drawn. */
void status_line_hide(struct status_line *s);
/* Returns whether there is a status line. */
static inline bool status_line_is_on(const struct status_line *s)
{
	return s->fd >= 0;
}

/*
 * The counters that are shown. They are totals; the shares are those of the time between two of
 * them.
 */
struct status_figures {
	uint64_t elapsed_ns; /* since the guest's first instruction; 0: it has not begun */
	uint64_t samples, kernel, user, idle, lost, overruns;
	bool collecting;
};

/*
 * Formats the text into out, which has STATUS_LINE_MAX bytes. before: the counters about a second
 * earlier; all zero: none.
 */
void status_line_text(char *out, const struct status_figures *now,
		      const struct status_figures *before);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * status_line: one line at the bottom of a terminal that tells how a run goes on.
 *
 * It stands on standard error below what was printed last, and is only there while the
 * cursor is at the start of a line: in the middle of a line of the guest's (a prompt) it
 * is not drawn. Whoever writes to that terminal hides it first; the next status_line_show()
 * draws it again. It is cut to the terminal's width, which is asked for each time, so that
 * a resized window needs no signal.
 *
 * Not locked: console.c does that for all who write while the guest runs.
 */
#ifndef KVMPROF_PROFILE_RECORD_CONSOLE_STATUS_LINE_H
#define KVMPROF_PROFILE_RECORD_CONSOLE_STATUS_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STATUS_LINE_MAX 256u

struct status_line {
	int fd;		    /* -1: there is none */
	unsigned int shown; /* columns of what stands there; 0: nothing does */
};

/* fd: where it stands; no terminal, or TERM=dumb: then it never does anything. */
void status_line_init(struct status_line *s, int fd);
/* Printable ASCII; what does not fit is cut. */
void status_line_show(struct status_line *s, const char *text);
void status_line_hide(struct status_line *s);
static inline bool status_line_is_on(const struct status_line *s)
{
	return s->fd >= 0;
}

/* What it tells. ns and counts are totals; the split is of the time between two of them. */
struct status_figures {
	uint64_t elapsed_ns; /* since the guest's first instruction; 0: it has not begun */
	uint64_t samples, kernel, user, idle, lost, overruns;
	bool collecting;
};

/* before: of a second or so ago; all zero: none. out has STATUS_LINE_MAX bytes. */
void status_line_text(char *out, const struct status_figures *now,
		      const struct status_figures *before);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pager: shows long texts of commands on a terminal.
 *
 * Between pager_start() and pager_finish() the output to stdout goes through $PAGER. If that is not
 * set, the text is held back until it is known whether it fits the terminal, including folded
 * lines: if so, it is printed, otherwise it goes through less. Called by the main thread; one pager
 * at a time.
 */
#ifndef KVMPROF_PROFILE_CMD_PAGER_H
#define KVMPROF_PROFILE_CMD_PAGER_H

#include <stdbool.h>
#include <sys/types.h>

struct pager {
	pid_t pid;     /* the process of $PAGER; 0: none runs */
	bool held;     /* stdout is redirected to the file `text`; `out` is the terminal */
	int text, out; /* descriptors, valid while `held` */
};

/* Returns true if stdout is a terminal that can show colours. NO_COLOR and TERM=dumb exclude it. */
bool pager_wants_color(void);

/*
 * Begins paging. Does nothing if stdout is not a terminal, $PAGER is empty or "cat", or it cannot
 * be started; the text is then written directly.
 */
void pager_start(struct pager *p);
/* Ends the output and waits until the user leaves the pager. Leaving it early is not an error. */
void pager_finish(struct pager *p);

#endif

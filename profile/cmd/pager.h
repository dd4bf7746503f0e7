/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pager: long texts of commands on a terminal.
 *
 * Between start and finish what is written to stdout goes through $PAGER. When that is not set,
 * the text is held until it is known whether it fits the terminal, folded lines included: then it
 * is just printed, else it goes through less. One thread; not reentrant.
 */
#ifndef KVMPROF_PROFILE_CMD_PAGER_H
#define KVMPROF_PROFILE_CMD_PAGER_H

#include <stdbool.h>
#include <sys/types.h>

struct pager {
	pid_t pid; /* 0: none runs */
	bool held; /* the text is in `text` so far, and stdout is `out` */
	int text, out;
};

/* Does stdout lead to somebody who can see colours? NO_COLOR and TERM=dumb: not. */
bool pager_wants_color(void);

/*
 * Nothing happens when stdout is no terminal, when $PAGER is empty or "cat", or when it
 * cannot be started: the text is then written as it would be without.
 */
void pager_start(struct pager *p);
/* Waits until the reader has seen enough. Leaving it early is no error. */
void pager_finish(struct pager *p);

#endif

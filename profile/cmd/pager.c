/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/pager.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* -F: a short text is just printed; -R: colours; -S: long lines are not folded; -X: it stays. */
#define DEFAULT_PAGER "if command -v less >/dev/null; then exec less -FRSX; else exec cat; fi"

bool pager_wants_color(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && (!no || !*no) && term && *term && strcmp(term, "dumb") != 0;
}

void pager_start(struct pager *p)
{
	const char *command = getenv("PAGER");
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, NULL, NULL };
	posix_spawn_file_actions_t actions;
	int fds[2];

	p->pid = 0;
	if (!isatty(STDOUT_FILENO) || (command && (!*command || !strcmp(command, "cat"))) ||
	    pipe(fds) < 0)
		return;
	argv[2] = (char *)(uintptr_t)(command ? command : DEFAULT_PAGER);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[0], STDIN_FILENO);
	posix_spawn_file_actions_addclose(&actions, fds[0]);
	posix_spawn_file_actions_addclose(&actions, fds[1]);
	fflush(stdout);
	if (posix_spawn(&p->pid, "/bin/sh", &actions, NULL, argv, environ) != 0) {
		p->pid = 0;
	} else {
		/* A reader who leaves early ends the text, not the program. */
		signal(SIGPIPE, SIG_IGN);
		dup2(fds[1], STDOUT_FILENO);
	}
	posix_spawn_file_actions_destroy(&actions);
	close(fds[0]);
	close(fds[1]);
}

void pager_finish(struct pager *p)
{
	if (!p->pid)
		return;
	/* One that was left before the end of the text: nothing was lost that somebody wanted. */
	if (fflush(stdout) == EOF || ferror(stdout)) {
		__fpurge(stdout);
		clearerr(stdout);
	}
	/* The pager sees the end of the text only when nobody can write any more. */
	close(STDOUT_FILENO);
	while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
		;
	p->pid = 0;
}

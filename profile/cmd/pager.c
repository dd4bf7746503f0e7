/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* -R: colours; -S: long lines are not folded; -X: the text stays. */
#define DEFAULT_PAGER "if command -v less >/dev/null; then exec less -RSX; else exec cat; fi"

bool pager_wants_color(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && (!no || !*no) && term && *term && strcmp(term, "dumb") != 0;
}

/* Runs the command by the shell, reading from in. 0: it cannot be started. */
static pid_t pager_spawn(const char *command, int in, int close_too)
{
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char *)(uintptr_t)command, NULL };
	posix_spawn_file_actions_t actions;
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	if (in != STDIN_FILENO)
		posix_spawn_file_actions_addclose(&actions, in);
	if (close_too >= 0)
		posix_spawn_file_actions_addclose(&actions, close_too);
	if (posix_spawn(&pid, "/bin/sh", &actions, NULL, argv, environ) != 0)
		pid = 0;
	posix_spawn_file_actions_destroy(&actions);
	return pid;
}

/* Holds the text. False: it cannot be. */
static bool pager_hold(struct pager *p)
{
	p->text = memfd_create("report", MFD_CLOEXEC);
	p->out = p->text < 0 ? -1 : fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (p->out < 0) {
		if (p->text >= 0)
			close(p->text);
		return false;
	}
	fflush(stdout);
	dup2(p->text, STDOUT_FILENO);
	p->held = true;
	return true;
}

void pager_start(struct pager *p)
{
	const char *command = getenv("PAGER");
	int fds[2];

	p->pid = 0;
	p->held = false;
	if (!isatty(STDOUT_FILENO) || (command && (!*command || !strcmp(command, "cat"))) ||
	    (!command && pager_hold(p)) || pipe(fds) < 0)
		return;
	fflush(stdout);
	p->pid = pager_spawn(command ? command : DEFAULT_PAGER, fds[0], fds[1]);
	if (p->pid) {
		/* A reader who leaves early ends the text, not the program. */
		signal(SIGPIPE, SIG_IGN);
		dup2(fds[1], STDOUT_FILENO);
	}
	close(fds[0]);
	close(fds[1]);
}

/* Rows that it takes on a terminal so wide; a row more than `rows` is enough to know. */
static unsigned int pager_rows(const char *text, size_t len, unsigned int columns,
			       unsigned int rows)
{
	unsigned int n = 0, column = 0;

	for (size_t i = 0; i < len && n <= rows; i++) {
		if (text[i] == '\033') { /* a colour: up to its 'm' */
			while (i < len && text[i] != 'm')
				i++;
		} else if (text[i] == '\n') {
			n += column ? (column + columns - 1) / columns : 1;
			column = 0;
		} else if ((text[i] & 0xc0) != 0x80) {
			column++;
		}
	}
	return n + (column != 0);
}

/* Prints the held text if it fits the terminal, otherwise through less. */
static void pager_release(struct pager *p)
{
	struct winsize w = { 0 };
	struct stat st;
	char *text = NULL;

	fflush(stdout);
	dup2(p->out, STDOUT_FILENO);
	if (fstat(p->text, &st) == 0 && st.st_size > 0)
		text = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, p->text, 0);
	if (text && text != MAP_FAILED) {
		bool fits = ioctl(p->out, TIOCGWINSZ, &w) == 0 && w.ws_col && w.ws_row &&
			    pager_rows(text, (size_t)st.st_size, w.ws_col, w.ws_row) < w.ws_row;

		lseek(p->text, 0, SEEK_SET);
		p->pid = fits ? 0 : pager_spawn(DEFAULT_PAGER, p->text, -1);
		if (!p->pid)
			fwrite(text, 1, (size_t)st.st_size, stdout);
		munmap(text, (size_t)st.st_size);
	}
	close(p->text);
	close(p->out);
	p->held = false;
	while (p->pid && waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
		;
	p->pid = 0;
}

void pager_finish(struct pager *p)
{
	if (p->held)
		pager_release(p);
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

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/handler.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 16u /* commands that wait, which the socket's buffer has room for */

static const char *const event_name[HANDLER_EVENTS] = { "hang", "panic" };

/* -- in the process ------------------------------------------------------------------------- */

static int execute(const char *command, const struct handler_message *m)
{
	char pid[16];
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* kvmprof ignores it, and programs inherit that. */
	signal(SIGPIPE, SIG_DFL);
	/* A terminal's Ctrl-C ends the run, and the command reports on that run. */
	setsid();
	snprintf(pid, sizeof(pid), "%d", m->pid);
	if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0 ||
	    setenv("KVMPROF_EVENT", event_name[m->event], 1) || setenv("KVMPROF_PID", pid, 1) ||
	    setenv("KVMPROF_CAUSE", m->cause, 1) || setenv("KVMPROF_VERDICT", m->verdict, 1))
		return 126;
	closefrom(STDERR_FILENO + 1);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	return 127;
}

/* Executes one command after another: a guest that fails again is reported when the first report is complete. */
static int serve(void *ctx)
{
	const struct handler *h = ctx;
	struct handler_message m;

	while (recv(HELPER_SOCKET, &m, sizeof(m), 0) == (ssize_t)sizeof(m)) {
		int status = 0, answer;
		pid_t pid;

		if ((unsigned int)m.event >= HANDLER_EVENTS || !h->command[m.event])
			return 1;
		m.cause[sizeof(m.cause) - 1] = m.verdict[sizeof(m.verdict) - 1] = '\0';
		pid = fork();
		if (!pid)
			syscall(SYS_exit_group, execute(h->command[m.event], &m));
		answer = pid < 0 || waitpid(pid, &status, 0) != pid ? -errno
			 : WIFEXITED(status)			    ? WEXITSTATUS(status)
								    : 128 + WTERMSIG(status);
		if (send(HELPER_SOCKET, &answer, sizeof(answer), MSG_NOSIGNAL) < 0)
			return 0;
	}
	return 0;
}

/* -- in the run ----------------------------------------------------------------------------- */

int handler_start(struct handler *h, struct err *e)
{
	int ret;

	if (!h->command[HANDLER_HANG] && !h->command[HANDLER_PANIC])
		return 0;
	ret = helper_fork(&h->helper, &(struct helper_work){ "a command", THREAD_MAIN, serve, h },
			  e);
	h->started = !ret;
	return ret;
}

int handler_execute(struct handler *h, const struct handler_message *m, struct err *e)
{
	if (h->pending == MOST)
		return err_set(e, EAGAIN, "%u commands wait already, and this one is left out",
			       MOST);
	/* A confined run may use read(2) and write(2), but neither send(2) nor recv(2). */
	if (!h->started || write(h->helper.socket, m, sizeof(*m)) != (ssize_t)sizeof(*m))
		return err_set(e, EIO, "the process that executes commands has ended");
	h->pending++;
	return 0;
}

int handler_end(struct handler *h, unsigned int ms, struct err *e)
{
	int answer, ret = 0;

	if (!h->started)
		return 0;
	for (; h->pending && !ret; h->pending--) {
		if (!helper_wait(&h->helper, ms))
			ret = err_set(e, ETIMEDOUT, "the command still runs after %u s", ms / 1000);
		else if (read(h->helper.socket, &answer, sizeof(answer)) != (ssize_t)sizeof(answer))
			ret = err_set(e, EIO, "the process that executes commands has ended");
		else if (answer < 0)
			ret = err_set(e, EIO, "the command could not be executed: %s",
				      strerror(-answer));
		else if (answer)
			ret = err_set(e, EIO, "the command ended with status %d", answer);
	}
	helper_end(&h->helper);
	h->started = false;
	return ret;
}

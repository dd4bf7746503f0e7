/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/top_guest.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CONNECT_TRIES 500
#define CONNECT_NAP_NS 20000000 /* 10 s in all: a host under load */
#define STARTS_WITH 6		/* arguments of our own in front */

/* In the child. Nothing but system calls from here on. */
static void become_run(const struct top_guest *g, char **argv)
{
	int null = open("/dev/null", O_RDWR);
	int log = open(g->log, O_WRONLY | O_CREAT | O_APPEND, 0600);

	/* Ctrl-C is for the view, which then ends the guest; and no view, no guest. */
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (null >= 0 && log >= 0 && dup2(null, STDIN_FILENO) >= 0 &&
	    dup2(log, STDOUT_FILENO) >= 0 && dup2(log, STDERR_FILENO) >= 0)
		execv("/proc/self/exe", argv);
	_exit(127);
}

int top_guest_start(struct top_guest *g, int argc, char **args, struct err *e)
{
	cleanup_free char **argv = calloc((size_t)argc + STARTS_WITH + 1, sizeof(*argv));
	char *own[STARTS_WITH] = { "kvmprof",	  "run",       "--quiet",
				   "--no-output", "--control", g->socket };
	const char *tmp = getenv("TMPDIR");

	if (!argv)
		return err_set(e, ENOMEM, "out of memory");
	if (!tmp || !*tmp || strlen(tmp) > 40)
		tmp = "/tmp";
	snprintf(g->dir, sizeof(g->dir), "%s/kvmprof.XXXXXX", tmp);
	if (!mkdtemp(g->dir)) {
		int cause = errno;

		g->dir[0] = '\0';
		return err_set(e, cause, "%s: cannot make a directory there: %s", tmp,
			       strerror(cause));
	}
	snprintf(g->socket, sizeof(g->socket), "%s/control", g->dir);
	snprintf(g->log, sizeof(g->log), "%s/log", g->dir);
	memcpy(argv, own, sizeof(own));
	memcpy(argv + STARTS_WITH, args, (size_t)argc * sizeof(*args));
	g->pid = fork();
	if (g->pid == 0)
		become_run(g, argv);
	if (g->pid < 0) {
		g->pid = 0;
		return err_set(e, errno, "cannot start the run: %s", strerror(errno));
	}
	return 0;
}

static bool has_ended(struct top_guest *g)
{
	if (g->pid && waitpid(g->pid, &g->status, WNOHANG) == g->pid)
		g->pid = 0;
	return !g->pid;
}

int top_guest_connect(struct top_guest *g, struct control_client **out, struct err *e)
{
	const struct timespec nap = { .tv_nsec = CONNECT_NAP_NS };
	int ret = -ENOENT;

	for (int i = 0; i < CONNECT_TRIES && (ret == -ENOENT || ret == -ECONNREFUSED); i++) {
		struct err why = { 0 };

		ret = control_client_open(out, g->socket, &why);
		if (ret && has_ended(g))
			return err_set(e, ECHILD, "the run has ended");
		if (ret)
			nanosleep(&nap, NULL);
		if (ret && ret != -ENOENT && ret != -ECONNREFUSED)
			return err_set(e, -ret, "%s", why.text);
	}
	return ret ? err_set(e, ETIMEDOUT, "the run does not begin") : 0;
}

void top_guest_end(struct top_guest *g)
{
	if (!g->pid)
		return;
	kill(g->pid, SIGINT);
	while (waitpid(g->pid, &g->status, 0) < 0 && errno == EINTR)
		;
	g->pid = 0;
}

int top_guest_exit_status(const struct top_guest *g)
{
	return WIFEXITED(g->status) ? WEXITSTATUS(g->status) : 1;
}

void top_guest_deinit(struct top_guest *g)
{
	top_guest_end(g);
	if (*g->dir)
		file_remove_tree(g->dir, NULL);
	g->dir[0] = '\0';
}

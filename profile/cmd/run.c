/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmd_run: `kvmprof run`: boot, sample, write, say what happened. */
#include "profile/cmd/cmd.h"
#include "profile/cmd/common.h"
#include "profile/cmd/view.h"

#include "base/cleanup.h"
#include "profile/record/run/run.h"
#include "profile/record/run/repeat.h"
#include "profile/record/run/definition.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

/* -1 to go on, else the exit status. */
static int take_definition(struct run *r, struct domain_xml *d)
{
	struct err e = { 0 };
	struct buf left;

	if (run_definition_apply(d, &r->asked, &e) < 0) {
		fprintf(stderr, "kvmprof: %s\n", e.text);
		return 1;
	}
	if (d->nleft) {
		buf_init(&left);
		run_definition_unused(d, "kvmprof:   ", 96, &left);
		fprintf(stderr, "kvmprof: this machine lacks the following of domain %s:\n%s",
			d->name ? d->name : r->asked.domain,
			left.failed ? "" : (const char *)left.data);
		buf_deinit(&left);
	}
	return run_options_check_machine(&r->asked);
}

/* -- the page of --view ------------------------------------------------------------------------ */

/* Seconds that a run waits for its page. */
#define PAGE_LIMIT_S 600

/*
 * The process that makes the page. It is forked before the run has a guest, because a run gives up
 * its rights then; it waits, and reads the profile as the command view does. A byte begins its
 * work, and a byte with its exit status ends it. If the run ends otherwise, so does the process.
 */
struct page_process {
	int fd; /* -1: none */
};

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Makes the page if there is another profile than before the run. Returns an exit status. */
static int page_serve(int fd, const struct run_options *o)
{
	struct stat before, now;
	bool had = stat(o->output, &before) == 0;
	char go;

	if (read(fd, &go, 1) != 1 || stat(o->output, &now) || (had && is_same_file(&before, &now)))
		return 0;
	return cmd_view_page(o->output, o->view);
}

/* Returns 0 or an exit status. */
static int page_begin(struct page_process *p, const struct run_options *o)
{
	const struct timeval limit = { .tv_sec = PAGE_LIMIT_S };
	int fd[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) < 0) {
		fprintf(stderr, "kvmprof: cannot prepare --view: %s\n", strerror(errno));
		return 1;
	}
	setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	pid = fork();
	if (pid < 0) {
		fprintf(stderr, "kvmprof: cannot prepare --view: %s\n", strerror(errno));
		close(fd[0]);
		close(fd[1]);
		return 1;
	}
	if (!pid) {
		char status;

		/* Ctrl-C ends the run, which then writes its profile. */
		signal(SIGINT, SIG_IGN);
		close(fd[0]);
		status = (char)page_serve(fd[1], o);
		_exit(write(fd[1], &status, 1) == 1 ? status : 1);
	}
	close(fd[1]);
	p->fd = fd[0];
	return 0;
}

/* Has the page made, and waits for it. Returns the exit status of the whole. */
static int page_end(struct page_process *p, int status)
{
	char made = 1;

	if (p->fd < 0)
		return status;
	if (write(p->fd, "g", 1) != 1 || read(p->fd, &made, 1) != 1)
		fputs("kvmprof: the page of --view was not made: make it with `kvmprof view'\n",
		      stderr);
	close(p->fd);
	return status ? status : made;
}

/* -- command ----------------------------------------------------------------------------------- */

int cmd_run(int argc, char **argv)
{
	cleanup_free struct run *r = calloc(1, sizeof(*r)); /* large: two stacks of frames */
	struct domain_xml definition = {
		0
	}; /* definition of --domain; the options point into it */
	struct page_process page = { .fd = -1 };
	int status;

	if (!r)
		return cmd_no_memory();
	r->asked.reporter = &cmd_reporter;
	r->asked.help = stdout;
	status = run_options_parse(&r->asked, argc, argv);
	if (status < 0 && r->asked.domain)
		status = take_definition(r, &definition);
	if (status < 0 && r->asked.repeat > 1)
		return run_repeat(&r->asked, argc, argv);
	r->json = r->asked.json ? stdout : NULL;
	if (status < 0 && r->asked.view)
		status = page_begin(&page, &r->asked) ? 1 : -1;
	if (status < 0)
		status = page_end(&page, run_main(r, argc, argv));
	domain_xml_deinit(&definition);
	return status;
}

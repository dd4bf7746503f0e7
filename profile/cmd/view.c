/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_view: `kvmprof view`: a profile, or two of them, as one HTML page.
 */
#include "profile/cmd/view.h"

#include "base/cleanup.h"
#include "base/outfile.h"
#include "profile/analyse/html/html.h"
#include "profile/analyse/stacks/selection.h"
#include "profile/cmd/cmd.h"
#include "profile/cmd/common.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEFAULT_OUTPUT "view.html"

struct cmd_view_options {
	struct html_options view;
	struct selection selection;
	struct debuginfo_places places;
	const char *base, *output, *title;
	bool open, no_source;
};

/* -- page -------------------------------------------------------------------------------------- */

static int view_read(struct html_profile *p, const struct cmd_view_options *o, const char *input,
		     struct err *e)
{
	struct html_options view = o->view;
	struct err why = { 0 };
	int ret;

	view.load.input = input;
	view.places = o->no_source ? NULL : &o->places;
	ret = html_load(p, &view, &why, e);
	if (ret || !p->n)
		return ret;
	cmd_report_missing(input, p->event[0]);
	if (!p->event[0]->samples && *p->event[0]->missed)
		return err_set(e, ENODATA, "%s: %s", input, p->event[0]->missed);
	/* The user is told only about places that he or she gave. */
	if (why.code && (o->places.given || o->places.map_file))
		fprintf(stderr, "kvmprof: no source lines: %s\n", why.text);
	return 0;
}

static int view_make(const struct cmd_view_options *o, struct err *e)
{
	struct html_profile p = { .n = 0 }, base = { .n = 0 };
	struct buf out;
	int ret = view_read(&p, o, o->view.load.input, e);

	buf_init(&out);
	if (!ret && o->base)
		ret = view_read(&base, o, o->base, e);
	ret = ret ? ret : html_write(&out, &p, o->base ? &base : NULL, o->title, e);
	ret = ret ? ret : outfile_write(o->output, out.data, out.len, e);
	buf_deinit(&out);
	html_unload(&base);
	html_unload(&p);
	return ret;
}

static int view_write_page(const struct cmd_view_options *o)
{
	struct err e = { 0 };
	int status = cmd_status(view_make(o, &e), &e);

	if (!status && strcmp(o->output, "-") != 0)
		fprintf(stderr, "kvmprof: wrote %s; open it in a browser\n", o->output);
	return status;
}

int cmd_view_page(const char *profile, const char *page)
{
	static struct cmd_view_options o = { .view = { .functions = HTML_FUNCTIONS } };

	o.view.load.input = profile;
	o.output = page;
	return view_write_page(&o);
}

/* -- browser ----------------------------------------------------------------------------------- */

/* Hands the page to the desktop's browser. xdg-open returns at once. */
static int view_show(const char *path)
{
	pid_t pid = fork();
	int status;

	if (pid < 0) {
		fprintf(stderr, "kvmprof: cannot start a browser: %s\n", strerror(errno));
		return 1;
	}
	if (!pid) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		if (null >= 0) {
			dup2(null, STDIN_FILENO);
			dup2(null, STDOUT_FILENO);
			dup2(null, STDERR_FILENO);
		}
		execlp("xdg-open", "xdg-open", path, (char *)NULL);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return 1;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	fprintf(stderr,
		"kvmprof: the page is written, but xdg-open %s: open %s in a browser by yourself\n",
		WIFEXITED(status) && WEXITSTATUS(status) == 127 ? "is not installed" : "failed",
		path);
	return 1;
}

/* -- command ----------------------------------------------------------------------------------- */

#define OPTION_STRUCT struct cmd_view_options

static const struct option_row rows[] = {
	CMD_INPUT(view.load.input),
	{ "output", 'o', "FILE", "the page; - is standard output (default: " DEFAULT_OUTPUT ")",
	  OPTION_TEXT_OF(output, "a file") },
	{ "open", 0, NULL, "open the page in the desktop's browser (xdg-open)",
	  OPTION_PUT(open, true) },
	{ "title", 0, "TEXT", "title (default: the profile's file name)", OPTION_TEXT(title) },
	{ "functions", 0, "N",
	  "show the instructions of the N functions with the most\n"
	  "time of their own (default: 100; 0: none)",
	  OPTION_WHOLE(view.functions, 0, 100000, "a number from 0 to 100000") },
	{ "no-source", 0, NULL, "without source lines", OPTION_PUT(no_source, true) },
	{ "event", 0, "NAME", "only this event (default: all)", OPTION_TEXT(view.load.event) },
	CMD_EPOCH(view.load.epoch),
	SELECTION_ROWS(selection),
	CMD_NO_DEMANGLE(view.load.no_demangle),
	CMD_BUILDID_DIR(view.load.buildid_dir),
	OPTION_ROWS(cmd_debuginfo_rows, places),
	OPTION_HELP,
	{ 0 },
};

static const struct option_set set = {
	.usage =
		"Usage: kvmprof view [OPTIONS] [PROFILE [BASE]]\n"
		"\n"
		"Write a profile as one HTML page with linked views: time line, flame graph,\n"
		"functions with callers and callees, instructions, vCPUs, requests of disks. With\n"
		"BASE the page compares the two. It needs no network; `?' in it lists the keys.\n"
		"\n",
	.rows = rows,
};

int cmd_view(int argc, char **argv)
{
	static struct cmd_view_options o = {
		/* large lists */
		.view = { .functions = HTML_FUNCTIONS },
		.output = DEFAULT_OUTPUT,
	};
	struct err e = { 0 };
	int status = cmd_options(&set, &o, argc, argv);

	if (status >= 0)
		return status;
	if (!o.view.load.input)
		o.view.load.input = optind < argc ? argv[optind++] : "perf.data";
	if (optind < argc)
		o.base = argv[optind++];
	if (optind < argc)
		return cmd_wrong_usage(argv, "unexpected argument", argv[optind]);
	if (selection_check(&o.selection, &e))
		return cmd_wrong(argv, e.text);
	if (o.open && !strcmp(o.output, "-"))
		return cmd_wrong(argv, "--open needs a file: name one with --output");
	o.view.load.selection = &o.selection;
	o.places.cache_dir = o.view.load.buildid_dir;
	cmd_debuginfo_show_progress(&o.places);
	status = view_write_page(&o);
	selection_deinit(&o.selection);
	return status || !o.open ? status : view_show(o.output);
}

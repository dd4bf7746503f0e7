/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_ps: `kvmprof ps`: the guest's tasks, read from outside.
 *
 * Of a run with a control socket it asks that; another VMM's machine it attaches to for
 * as long as the looks take.
 */
#include "profile/cmd/cmd.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "profile/cmd/common.h"
#include "profile/record/control/client.h"
#include "profile/record/control/path.h"
#include "profile/record/control/ps_view.h"
#include "profile/record/control/request.h"
#include "profile/record/libvirt/attach_domain.h"
#include "profile/record/run/ps_json.h"
#include "profile/record/run/visit.h"

#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The samples a second that show where the kernel is. */
#define FREQ_HZ 49

struct ps_looks {
	enum ps_stacks stacks, asked;
	double interval_s;
	json_t *before, *now;
	json_t **out; /* where the next look goes */
};

/* On the consumer's thread. */
static int ps_look(void *ctx, struct guest *g, struct err *e)
{
	struct ps_looks *l = ctx;

	return ps_json_read(g, l->stacks, l->out, e);
}

static int ps_look_all(struct visit *v, void *ctx, struct err *e)
{
	struct ps_looks *l = ctx;
	int ret = 0;

	l->stacks = PS_WITHOUT_STACKS;
	if (l->interval_s > 0) {
		l->out = &l->before;
		ret = visit_look(v, ps_look, e);
		ret = ret ? ret : visit_nap(v, l->interval_s * 1e3, e);
	}
	l->stacks = l->asked;
	l->out = &l->now;
	return ret ? ret : visit_look(v, ps_look, e);
}

/*
 * Makes one look, or two with interval_s > 0 between them: then *before has the first one. Both are
 * the caller's. -ETIMEDOUT: no kernel with tasks was found; -EINTR after a signal.
 */
static int ps_attach(const struct attach_request *what, struct ps_looks *l, struct err *e)
{
	const struct visit_request request = {
		.command = "ps",
		.reporter = &cmd_reporter,
		.what = what,
		.freq_hz = FREQ_HZ,
		.ctx = l,
		.body = ps_look_all,
	};

	return visit_machine(&request, e);
}

struct ps_options {
	struct ps_view_options view;
	struct attach_request attach;
	const char *control;
	double interval_s;
	bool json;
};

static int parse_sort(void *at, char *arg, struct err *e)
{
	struct ps_view_options *view = at;

	(void)e;
	return ps_view_sort_find(arg, &view->sort) ? 0 : -EINVAL;
}

#define OPTION_STRUCT struct ps_options

static const struct option_row rows[] = {
	{ "control", 0, "PATH", "the run's socket; auto: the only run with --control auto",
	  OPTION_TEXT_OF(control, "a path") },
	OPTION_ROWS(cmd_attach_rows, attach),
	{ "stacks", 0, NULL, "also the kernel stack of each task that does not run",
	  OPTION_PUT(view.stacks, true) },
	{ "sort", 0, "KEY", "pid (default), cpu, time, comm, state, wchan, vsz or rss",
	  OPTION_CALL_AT(parse_sort, view, "pid, cpu, time, comm, state, wchan, vsz or rss") },
	{ "no-kernel", 0, NULL, "no kernel threads", OPTION_PUT(view.no_kernel, true) },
	{ "interval", 0, "SECONDS",
	  "time between two readings, for %CPU (default 0.5);\n"
	  "0: one reading, without %CPU",
	  OPTION_SECONDS(interval_s, 0, 3600, "0 to 3600 seconds") },
	{ "json", 0, NULL, "as JSON: one object", OPTION_PUT(json, true) },
	OPTION_HELP,
	{ 0 },
};

static const struct option_set set = {
	.usage = "Usage: kvmprof ps [OPTIONS] PID|DOMAIN\n"
		 "       kvmprof ps [OPTIONS] --control PATH|auto\n"
		 "\n"
		 "Show the tasks of a guest and what they wait for, read from its memory while it "
		 "runs: of\n"
		 "a machine of another VMM (see `kvmprof attach`), or of a `kvmprof run "
		 "--control`. Values\n"
		 "that are not available for this guest's kernel are shown as -.\n"
		 "\n",
	.rows = rows,
	.column = 26,
};

/* -1 to go on, else the exit status. */
static int ps_parse(struct ps_options *o, int argc, char **argv)
{
	int status = cmd_options(&set, o, argc, argv);

	if (status >= 0)
		return status;
	if (!o->control)
		return cmd_attach_parse(&o->attach, argc, argv, ", --control");
	if (optind < argc || o->attach.what || o->attach.uri)
		return cmd_wrong_usage(argv, "--control or a machine to attach to, not also",
				       optind < argc	? argv[optind]
				       : o->attach.what ? o->attach.what
							: o->attach.uri);
	return -1;
}

/* -- a run's control socket ------------------------------------------------------------- */

static int ps_ask_once(struct control_client *c, bool stacks, json_t **out, struct err *e)
{
	return control_client_request(c, json_pack("{s:s,s:b}", "cmd", "ps", "stacks", stacks), out,
				      e);
}

static void ps_sleep(double seconds)
{
	struct timespec t = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

static int ps_ask_run(const struct ps_options *o, json_t **before, json_t **now, struct err *e)
{
	struct control_client *c = NULL;
	int ret = control_client_open(&c, o->control, e);

	if (!ret && o->interval_s > 0) {
		ret = ps_ask_once(c, false, before, e);
		if (!ret)
			ps_sleep(o->interval_s);
	}
	ret = ret ? ret : ps_ask_once(c, o->view.stacks, now, e);
	control_client_close(c);
	return ret;
}

/* -- output ----------------------------------------------------------------------------- */

static int ps_print_json(json_t *now, const json_t *before, struct err *e)
{
	cleanup_free char *s = NULL;

	json_object_del(now, "ok");
	if (before)
		ps_view_add_cpu(now, before);
	s = json_dumps(now, JSON_COMPACT);
	if (!s)
		return err_nomem(e);
	puts(s);
	return 0;
}

static int ps_print(const struct ps_options *o, json_t *now, const json_t *before, struct err *e)
{
	struct buf b;
	int ret;

	if (o->json)
		return ps_print_json(now, before, e);
	buf_init(&b);
	ret = ps_view_text(&b, now, before, &o->view, e);
	if (!ret)
		fwrite(b.data, 1, b.len, stdout);
	buf_deinit(&b);
	return ret;
}

int cmd_ps(int argc, char **argv)
{
	struct ps_options o = { .interval_s = 0.5 };
	json_t *before = NULL, *now = NULL;
	struct err e = { 0 };
	struct ps_looks looks = { 0 };
	int status = ps_parse(&o, argc, argv), ret;

	if (status >= 0)
		return status;
	looks.asked = o.view.stacks ? PS_WITH_STACKS : PS_WITHOUT_STACKS;
	looks.interval_s = o.interval_s;
	if (o.control)
		ret = ps_ask_run(&o, &before, &now, &e);
	else
		ret = ps_attach(&o.attach, &looks, &e);
	if (!o.control) {
		before = looks.before;
		now = looks.now;
	}
	ret = ret ? ret : ps_print(&o, now, before, &e);
	if (ret)
		fprintf(stderr, "kvmprof ps: %s\n", e.text);
	json_decref(before);
	json_decref(now);
	return ret ? 1 : 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_ps: `kvmprof ps`: the guest's tasks, read from outside.
 *
 * Of a run with a control socket it asks that; another VMM's machine it attaches to for
 * as long as the looks take.
 */
#include "profile/cmd/cmd.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "profile/cmd/common.h"
#include "profile/cmd/ps_attach.h"
#include "profile/record/control/client.h"
#include "profile/record/control/path.h"
#include "profile/record/control/request.h"
#include "profile/record/control/ps_view.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct options {
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
	return ps_sort_find(arg, &view->sort) ? 0 : -EINVAL;
}

#define OPTION_STRUCT struct options

static const struct option_row rows[] = {
	{ "control", 0, "PATH", "the run's socket; auto: the only run with --control auto",
	  OPTION_TEXT_OF(control, "a path") },
	OPTION_AS("connect", NULL, cmd_attach_rows, attach),
	OPTION_AS("pid", "this process's guest", cmd_attach_rows, attach),
	OPTION_AS("domain", "this domain's", cmd_attach_rows, attach),
	{ "stacks", 0, NULL, "also the kernel stack of each task that does not run",
	  OPTION_PUT(view.stacks, true) },
	{ "sort", 0, "KEY", "pid (default), cpu, time, comm, state or wchan",
	  OPTION_CALL_AT(parse_sort, view, "pid, cpu, time, comm, state or wchan") },
	{ "no-kernel", 0, NULL, "no kernel threads", OPTION_PUT(view.no_kernel, true) },
	{ "interval", 0, "SECONDS",
	  "%CPU is of this time, between two looks (default 0.5);\n"
	  "0: one look, without %CPU",
	  OPTION_REAL(interval_s, 0, 3600, "0 to 3600 seconds") },
	{ "json", 0, NULL, "as JSON: one object", OPTION_PUT(json, true) },
	OPTION_HELP,
	{ 0 },
};

static const struct option_set set = {
	.usage = "Usage: kvmprof ps [OPTIONS] PID|DOMAIN\n"
		 "       kvmprof ps [OPTIONS] --control PATH|auto\n"
		 "\n"
		 "The tasks of a guest, with what they wait for, read out of its memory while it "
		 "runs:\n"
		 "of a machine that another VMM runs (see `kvmprof attach`), or of a `kvmprof "
		 "run\n"
		 "--control`. What this guest's kernel does not tell is shown as -.\n"
		 "\n",
	.rows = rows,
	.column = 26,
};

/* -1 to go on, else the exit status. */
static int ps_parse(struct options *o, int argc, char **argv)
{
	int status = cmd_options(&set, o, argc, argv);
	struct err e = { 0 };

	if (status >= 0)
		return status;
	if (optind < argc && cmd_attach_set(&o->attach, ATTACH_GUESS, argv[optind++], &e))
		return cmd_wrong(argv, e.text);
	if (optind < argc)
		return cmd_wrong_usage(argv, "unexpected argument", argv[optind]);
	if (o->control && (o->attach.what || o->attach.uri))
		return cmd_wrong_usage(argv, "--control or a machine to attach to, not also",
				       o->attach.what ? o->attach.what : o->attach.uri);
	if (!o->control && !o->attach.what)
		return cmd_wrong(argv, "which machine? Give a PID, a libvirt domain or --control");
	if (o->attach.way == ATTACH_PID && o->attach.uri)
		return cmd_wrong_usage(argv, "--connect doesn't go with --pid", o->attach.what);
	return -1;
}

/* -- a run's control socket ------------------------------------------------------------- */

static int ps_find_run(char path[CONTROL_PATH_MAX], struct err *e)
{
	pid_t pid[CONTROL_MAX_FOUND];
	unsigned int n = control_find(pid);

	if (n != 1)
		return err_set(e, ENOENT,
			       "%u runs were started with --control auto%s: give the socket's "
			       "path; `kvmprof ctl list` shows them",
			       n, n ? "" : " and go on");
	return control_path_of(path, pid[0], CONTROL_MISSING_FAILS, e);
}

static int ps_ask_once(struct control_client *c, bool stacks, json_t **out, struct err *e)
{
	return control_client_ask(c, json_pack("{s:s,s:b}", "cmd", "ps", "stacks", stacks), out, e);
}

static void ps_sleep(double seconds)
{
	struct timespec t = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

static int ps_ask_run(const struct options *o, json_t **before, json_t **now, struct err *e)
{
	char found[CONTROL_PATH_MAX];
	const char *path = o->control;
	struct control_client *c = NULL;
	int ret = 0;

	if (!strcmp(path, CONTROL_PATH_AUTO)) {
		ret = ps_find_run(found, e);
		path = found;
	}
	ret = ret ? ret : control_client_open(&c, path, e);
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
		return err_set(e, ENOMEM, "out of memory");
	puts(s);
	return 0;
}

static int ps_print(const struct options *o, json_t *now, const json_t *before, struct err *e)
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
	struct options o = { .interval_s = 0.5 };
	json_t *before = NULL, *now = NULL;
	struct err e = { 0 };
	int status = ps_parse(&o, argc, argv), ret;

	if (status >= 0)
		return status;
	if (o.control)
		ret = ps_ask_run(&o, &before, &now, &e);
	else
		ret = ps_attach(&o.attach, o.interval_s,
				o.view.stacks ? PS_WITH_STACKS : PS_WITHOUT_STACKS, &before, &now,
				&e);
	ret = ret ? ret : ps_print(&o, now, before, &e);
	if (ret)
		fprintf(stderr, "kvmprof ps: %s\n", e.text);
	json_decref(before);
	json_decref(now);
	return ret ? 1 : 0;
}

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
#include "profile/control/client.h"
#include "profile/control/path.h"
#include "profile/control/request.h"
#include "profile/control/ps_view.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] =
	"Usage: kvmprof ps [OPTIONS] PID|DOMAIN\n"
	"       kvmprof ps [OPTIONS] --control PATH|auto\n"
	"\n"
	"The tasks of a guest, with what they wait for, read out of its memory while it runs:\n"
	"of a machine that another VMM runs (see `kvmprof attach`), or of a `kvmprof run\n"
	"--control`. What this guest's kernel does not tell is shown as -.\n"
	"\n"
	"      --control PATH      the run's socket; auto: the only run with --control auto\n"
	"  -c, --connect URI       libvirt's, as for virsh; a number is a domain's id then\n"
	"      --pid PID           this process's guest\n"
	"      --domain DOMAIN     this domain's\n"
	"      --stacks            also the kernel stack of each task that does not run\n"
	"      --sort KEY          pid (default), cpu, time, comm, state or wchan\n"
	"      --no-kernel         no kernel threads\n"
	"      --interval SECONDS  %CPU is of this time, between two looks (default 0.5);\n"
	"                          0: one look, without %CPU\n"
	"      --json              as JSON: one object\n"
	"  -h, --help              this text\n";

struct options {
	struct ps_view_options view;
	struct attach_request attach;
	const char *control;
	double interval_s;
	bool json;
};

enum {
	OPT_CONTROL = 256,
	OPT_PID,
	OPT_DOMAIN,
	OPT_STACKS,
	OPT_SORT,
	OPT_NO_KERNEL,
	OPT_INTERVAL,
	OPT_JSON
};

static const struct option longopts[] = {
	{ "control", required_argument, NULL, OPT_CONTROL },
	{ "connect", required_argument, NULL, 'c' },
	{ "pid", required_argument, NULL, OPT_PID },
	{ "domain", required_argument, NULL, OPT_DOMAIN },
	{ "stacks", no_argument, NULL, OPT_STACKS },
	{ "sort", required_argument, NULL, OPT_SORT },
	{ "no-kernel", no_argument, NULL, OPT_NO_KERNEL },
	{ "interval", required_argument, NULL, OPT_INTERVAL },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static int take_what(struct options *o, enum attach_way way, char **argv, const char *what)
{
	if (o->attach.what)
		return cmd_wrong_usage(argv, "one machine at a time, not also", what);
	if (!*what)
		return cmd_wrong_usage(argv, "expected a PID or a domain, not", what);
	o->attach.way = way;
	o->attach.what = what;
	return -1;
}

static int take_interval(struct options *o, char **argv)
{
	char *end;

	errno = 0;
	o->interval_s = strtod(optarg, &end);
	/* Written so that what is no number fails, too. */
	if (errno || end == optarg || *end || !(o->interval_s >= 0 && o->interval_s <= 3600))
		return cmd_wrong_usage(argv, "--interval: expected 0 to 3600 seconds, not", optarg);
	return -1;
}

/* -1 to go on, else the exit status. */
static int take(struct options *o, int c, char **argv)
{
	switch (c) {
	case OPT_CONTROL:
		o->control = optarg;
		return *optarg ? -1 : cmd_wrong_usage(argv, "--control: expected a path, not", "");
	case 'c':
		o->attach.uri = optarg;
		return -1;
	case OPT_PID:
		return take_what(o, ATTACH_PID, argv, optarg);
	case OPT_DOMAIN:
		return take_what(o, ATTACH_DOMAIN, argv, optarg);
	case OPT_STACKS:
		o->view.stacks = true;
		return -1;
	case OPT_SORT:
		return ps_sort_find(optarg, &o->view.sort)
			       ? -1
			       : cmd_wrong_usage(argv, "--sort: unknown key", optarg);
	case OPT_NO_KERNEL:
		o->view.no_kernel = true;
		return -1;
	case OPT_INTERVAL:
		return take_interval(o, argv);
	case OPT_JSON:
		o->json = true;
		return -1;
	case 'h':
		fputs(usage, stdout);
		return 0;
	default:
		return cmd_wrong_option(argv, c);
	}
}

static int parse(struct options *o, int argc, char **argv)
{
	int c, status;

	optind = 1;
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":c:h", longopts, NULL)) != -1) {
		status = take(o, c, argv);
		if (status >= 0)
			return status;
	}
	if (optind < argc) {
		status = take_what(o, ATTACH_GUESS, argv, argv[optind]);
		if (status >= 0)
			return status;
		optind++;
	}
	if (optind < argc)
		return cmd_wrong_usage(argv, "unexpected argument", argv[optind]);
	if (o->control && (o->attach.what || o->attach.uri))
		return cmd_wrong_usage(argv, "--control or a machine to attach to, not also",
				       o->attach.what ? o->attach.what : o->attach.uri);
	if (!o->control && !o->attach.what) {
		fputs("kvmprof ps: which machine? Give a PID, a libvirt domain or --control (try "
		      "kvmprof ps --help)\n",
		      stderr);
		return 2;
	}
	if (o->attach.way == ATTACH_PID && o->attach.uri)
		return cmd_wrong_usage(argv, "--connect doesn't go with --pid", o->attach.what);
	return -1;
}

/* -- a run's control socket ------------------------------------------------------------- */

static int find_run(char path[CONTROL_PATH_MAX], struct err *e)
{
	pid_t pid[CONTROL_MAX_FOUND];
	unsigned int n = control_find(pid);

	if (n != 1)
		return err_set(e, ENOENT,
			       "%u runs were started with --control auto%s: give the socket's "
			       "path; `kvmprof ctl list` shows them",
			       n, n ? "" : " and go on");
	return control_path_of(path, pid[0], false, e);
}

static int ask_once(struct control_client *c, bool stacks, json_t **out, struct err *e)
{
	return control_client_ask(c, json_pack("{s:s,s:b}", "cmd", "ps", "stacks", stacks), out, e);
}

static void wait_for(double seconds)
{
	struct timespec t = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

static int ask_run(const struct options *o, json_t **before, json_t **now, struct err *e)
{
	char found[CONTROL_PATH_MAX];
	const char *path = o->control;
	struct control_client *c = NULL;
	int ret = 0;

	if (!strcmp(path, CONTROL_PATH_AUTO)) {
		ret = find_run(found, e);
		path = found;
	}
	ret = ret ? ret : control_client_open(&c, path, e);
	if (!ret && o->interval_s > 0) {
		ret = ask_once(c, false, before, e);
		if (!ret)
			wait_for(o->interval_s);
	}
	ret = ret ? ret : ask_once(c, o->view.stacks, now, e);
	control_client_close(c);
	return ret;
}

/* -- output ----------------------------------------------------------------------------- */

static int put_json(json_t *now, const json_t *before, struct err *e)
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

static int put(const struct options *o, json_t *now, const json_t *before, struct err *e)
{
	struct buf b;
	int ret;

	if (o->json)
		return put_json(now, before, e);
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
	int status = parse(&o, argc, argv), ret;

	if (status >= 0)
		return status;
	if (o.control)
		ret = ask_run(&o, &before, &now, &e);
	else
		ret = ps_attach(&o.attach, o.interval_s, o.view.stacks, &before, &now, &e);
	ret = ret ? ret : put(&o, now, before, &e);
	if (!ret && fflush(stdout))
		ret = err_set(&e, errno, "standard output: %s", strerror(errno));
	if (ret)
		fprintf(stderr, "kvmprof ps: %s\n", e.text);
	json_decref(before);
	json_decref(now);
	return ret ? 1 : 0;
}

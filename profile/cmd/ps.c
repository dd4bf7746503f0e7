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
#include "base/err.h"
#include "base/signals.h"
#include "profile/cmd/common.h"
#include "profile/format/sink/sink.h"
#include "profile/record/control/client.h"
#include "profile/record/control/path.h"
#include "profile/record/control/ps_view.h"
#include "profile/record/control/request.h"
#include "profile/record/libvirt/attach_domain.h"
#include "profile/record/run/ps_json.h"
#include "profile/record/run/run.h"
#include "profile/record/run/sandbox.h"
#include "vmm/end.h"
#include "vmm/vm.h"

#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* How long the kernel is looked for: idle guests are seen, but stopped ones are not. */
#define PS_ATTACH_WAIT_S 20

/* The samples a second that show where the kernel is. */
#define FREQ_HZ 49
#define NAP_MS 50

struct look {
	struct pipeline_job job;
	struct pipeline *pipeline;
	int done; /* eventfd */
	enum ps_stacks stacks;
	json_t *tasks;
	struct err err;
	int ret;
};

/* On the consumer's thread. */
static void run_look(struct pipeline_job *job, const struct pipeline_stats *stats)
{
	struct look *l = (struct look *)((char *)job - offsetof(struct look, job));
	uint64_t one = 1;

	(void)stats;
	l->ret = ps_json_read(pipeline_guest(l->pipeline), l->stacks, &l->tasks, &l->err);
	(void)!write(l->done, &one, sizeof(one));
}

/* In a signal handler. */
static void refuse_look(struct pipeline_job *job)
{
	struct look *l = (struct look *)((char *)job - offsetof(struct look, job));
	uint64_t one = 1;

	l->ret = -EFAULT;
	(void)!write(l->done, &one, sizeof(one));
}

/* Until the look is made: it can't be called off. */
static int look_once(struct run *r, struct look *l, json_t **out, struct err *e)
{
	struct pollfd done = { .fd = l->done, .events = POLLIN };
	uint64_t count;

	l->err = (struct err){ 0 };
	l->job.run = run_look;
	l->job.gone = refuse_look;
	pipeline_post(r->pipeline, &l->job);
	while (poll(&done, 1, -1) < 0 && errno == EINTR)
		;
	(void)!read(l->done, &count, sizeof(count));
	if (l->ret == -EFAULT)
		return err_set(e, EFAULT, "the thread that reads guest memory has crashed");
	if (l->ret)
		return err_set(e, -l->ret, "%s", l->err.text);
	*out = l->tasks;
	return 0;
}

/* -EINTR: a signal; -ESRCH: the machine has ended; 0: time has passed. */
static int nap(struct run *r, double ms, struct err *e)
{
	struct pollfd fds[] = {
		{ .fd = r->signals.fd, .events = POLLIN },
		{ .fd = vm_end_fd(r->vm), .events = POLLIN },
	};
	uint64_t end = clock_mono_ns() + (uint64_t)(ms * 1e6), now;

	while ((now = clock_mono_ns()) < end) {
		int n = poll(fds, 2, (int)((end - now) / 1000000) + 1);

		if (n > 0 && fds[0].revents && run_must_end(r))
			return err_set(e, EINTR, "interrupted");
		if (n > 0 && fds[1].revents)
			return err_set(e, ESRCH, "the machine has ended");
	}
	return 0;
}

static int look_until_known(struct run *r, struct look *l, json_t **out, struct err *e)
{
	uint64_t start = clock_mono_ns();
	struct err why = { 0 };
	int ret;

	for (;;) {
		why = (struct err){ 0 };
		ret = look_once(r, l, out, &why);
		if (ret != -EAGAIN)
			return ret ? err_set(e, -ret, "%s", why.text) : 0;
		if (clock_mono_ns() - start > PS_ATTACH_WAIT_S * NSEC_PER_SEC)
			return err_set(e, ETIMEDOUT, "no tasks found after %d s: %.200s",
				       PS_ATTACH_WAIT_S, why.text);
		ret = nap(r, NAP_MS, e);
		if (ret)
			return ret;
	}
}

/* *l has its eventfd, and the stacks that the last look is to have. */
static int looks(struct run *r, struct look *l, double interval_s, json_t **before, json_t **now,
		 struct err *e)
{
	const enum ps_stacks stacks = l->stacks;
	int ret = 0;

	l->stacks = PS_WITHOUT_STACKS;
	l->pipeline = r->pipeline;
	if (interval_s > 0) {
		ret = look_until_known(r, l, before, e);
		ret = ret ? ret : nap(r, interval_s * 1e3, e);
	}
	l->stacks = stacks;
	return ret ? ret : look_until_known(r, l, now, e);
}

static int look_at_machine(struct run *r, double interval_s, enum ps_stacks stacks, json_t **before,
			   json_t **now, struct err *e)
{
	struct guest_options go = { .runs = true };
	struct look look = { .done = -1 };
	/* This thread opens no descriptor once it is bound. */
	cleanup_close int done = eventfd(0, EFD_CLOEXEC);
	int ret = done < 0 ? err_set(e, errno, "eventfd: %s", strerror(errno)) : run_prepare(r, e);

	if (ret)
		return ret;
	ret = run_sandbox_begin(r, e);
	if (ret)
		return ret;
	signals_set(SIGNALS_GRACE); /* what waits for a look at the guest can't be called off */
	target_bind(&r->source.target, vm_memory(r->vm));
	go.moves = r->source.target.is_linux;
	ret = sink_null_create(&r->profile.sink, e);
	if (ret)
		return ret;
	ret = pipeline_start(&r->pipeline,
			     &(struct pipeline_parts){ &r->source.target, r->vm, r->profile.sink },
			     &go, NULL, NULL, e);
	if (ret)
		return ret;
	ret = vm_start(r->vm, e);
	if (ret)
		return ret;
	ret = run_sandbox_attached(r, e);
	if (ret)
		return ret;
	look.done = done;
	look.stacks = stacks;
	ret = looks(r, &look, interval_s, before, now, e);
	vm_end(r->vm, VM_END_ASKED);
	vm_join(r->vm);
	run_restore_stop_signals(r);
	pipeline_finish(r->pipeline, &r->stats, &r->crash, NULL);
	r->pipeline_done = true;
	return ret;
}

/*
 * One look, or two with interval_s > 0 between them: then *before has the first one. Both are
 * the caller's. -ETIMEDOUT: no kernel with tasks was found; -EINTR after a signal.
 */
static int ps_attach(const struct attach_request *what, double interval_s, enum ps_stacks stacks,
		     json_t **before, json_t **now, struct err *e)
{
	cleanup_free struct run *r = calloc(1, sizeof(*r)); /* large: two stacks of frames */
	char name[64];
	int ret;

	if (!r)
		return err_nomem(e);
	r->asked.reporter = &cmd_reporter;
	run_options_default(&r->asked);
	r->asked.command = "ps";
	r->asked.quiet = true;
	r->asked.tune = false;
	r->asked.freq_hz = FREQ_HZ;
	ret = attach_domain_find(what, &r->asked.attach, &r->domain, e);
	if (ret)
		return ret;
	snprintf(name, sizeof(name), "(guest of process %d)", (int)r->asked.attach);
	r->asked.attach_name = name;
	run_init(r);
	console_init(&r->console, -1);
	ret = run_markers_init(&r->markers, &r->asked, &r->console, e);
	ret = ret ? ret : look_at_machine(r, interval_s, stacks, before, now, e);
	run_deinit(r);
	return ret;
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
	OPTION_AS("connect", NULL, cmd_attach_rows, attach),
	OPTION_AS("pid", "this process's guest", cmd_attach_rows, attach),
	OPTION_AS("domain", "this domain's", cmd_attach_rows, attach),
	OPTION_AS("name", "the machine with this name on its VMM's command line", cmd_attach_rows,
		  attach),
	{ "stacks", 0, NULL, "also the kernel stack of each task that does not run",
	  OPTION_PUT(view.stacks, true) },
	{ "sort", 0, "KEY", "pid (default), cpu, time, comm, state or wchan",
	  OPTION_CALL_AT(parse_sort, view, "pid, cpu, time, comm, state or wchan") },
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
		return cmd_wrong(argv, "which machine? Give a PID, a libvirt domain, --name or "
				       "--control; `kvmprof list --machines` lists them");
	if ((o->attach.way == ATTACH_PID || o->attach.way == ATTACH_NAME) && o->attach.uri)
		return cmd_wrong_usage(argv, "--connect cannot be combined with --pid or --name",
				       o->attach.what);
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

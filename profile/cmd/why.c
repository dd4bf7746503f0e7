/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_why: `kvmprof why`: a guest that stands still, explained from outside.
 */
#include "profile/cmd/cmd.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/helper.h"
#include "profile/cmd/common.h"
#include "profile/cmd/target.h"
#include "profile/record/run/visit.h"
#include "profile/record/why/why.h"
#include "vmm/attach/standing.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Samples a second. About twenty between the looks stop each vCPU for a few milliseconds in all. */
#define FREQ_HZ 37
#define SHORT_LOOK_S 0.2
#define LONG_LOOK_S 1.0

/* -- a process that looks at the host ---------------------------------------------------- */

/*
 * The process that attaches to a machine gives up the right to read /proc, so for --watch another one, forked before
 * that, looks at the host's side.
 */

/* The time by which an answer may be late: the host may be loaded, which is what is looked for. */
#define LATE_MS 20000u

/* The process. All zero: there is none. */
struct watch {
	struct helper helper;
	pid_t pid; /* the machine's process */
	bool started;
};

struct watch_answer {
	int ret;
	struct standing standing;
};

/* Runs in the process. */
static int why_serve(void *ctx)
{
	const struct watch *w = ctx;
	double seconds;

	while (read(HELPER_SOCKET, &seconds, sizeof(seconds)) == (ssize_t)sizeof(seconds)) {
		struct watch_answer a = { 0 };
		struct err ignored = { 0 };

		a.ret = standing_look(w->pid, seconds, &a.standing, &ignored);
		if (write(HELPER_SOCKET, &a, sizeof(a)) != (ssize_t)sizeof(a))
			return 1;
	}
	return 0;
}

/* Starts the process. Returns 0, or -errno with *e recorded. The caller ends it with watch_end(). */
static int watch_start(struct watch *w, pid_t pid, struct err *e)
{
	int ret;

	w->pid = pid;
	ret = helper_fork(
		&w->helper,
		&(struct helper_work){ "the look at the host", THREAD_MAIN, why_serve, w }, e);
	w->started = !ret;
	return ret;
}

static void watch_end(struct watch *w)
{
	if (w->started)
		helper_end(&w->helper);
	w->started = false;
}

/*
 * Looks for so many seconds. Returns 0; -ESRCH if the machine has ended; or -EIO if the process has ended or
 * does not answer in time; *e is recorded.
 */
static int watch_look(struct watch *w, double seconds, struct standing *out, struct err *e)
{
	struct watch_answer a;

	if (!w->started ||
	    write(w->helper.socket, &seconds, sizeof(seconds)) != (ssize_t)sizeof(seconds) ||
	    !helper_wait(&w->helper, (unsigned int)(seconds * 1e3) + LATE_MS) ||
	    read(w->helper.socket, &a, sizeof(a)) != (ssize_t)sizeof(a))
		return err_set(e, EIO, "the process that looks at the host's side has ended");
	if (a.ret)
		return err_set(e, ESRCH, "the machine has ended");
	*out = a.standing;
	return 0;
}

struct why_options {
	struct cmd_target target;
	double interval_s, hang_s;
	bool json, watch;
};

struct why_run {
	const struct why_options *o;
	struct why *why;
	struct standing standing;
	json_t *result;
	uint64_t start_ns;
	bool suspects;	       /* the last look of --watch gives a reason to sample */
	uint64_t stops_before; /* stops of a vCPU before the first look */
	bool longer;	       /* a later second look would prove more */
	struct watch host;     /* with --watch */
};

static void put_cost(struct why_run *r, const struct visit_cost *cost)
{
	json_object_set_new(r->result, "stops", json_integer((json_int_t)cost->stops));
	json_object_set_new(r->result, "stopped_ns", json_integer((json_int_t)cost->stopped_ns));
	json_object_set_new(r->result, "longest_stop_ns",
			    json_integer((json_int_t)cost->longest_ns));
	json_object_set_new(r->result, "took_ns",
			    json_integer((json_int_t)(clock_mono_ns() - r->start_ns)));
}

/* Adds the cost of the visit, which is known only after the last stop. */
static void add_cost(struct visit *v, void *ctx)
{
	struct why_run *r = ctx;
	struct visit_cost cost;

	if (!r->result)
		return;
	visit_cost(v, &cost);
	put_cost(r, &cost);
}

/*
 * What keeps the machine from running on the host's side also keeps it from being attached to: a thread that is stopped or gets
 * no processor does not answer. A short look that finds such a cause is made again for longer, and then it is the verdict.
 */
static int look_at_host(pid_t pid, void *ctx, struct err *e)
{
	struct why_run *r = ctx;
	int ret = standing_look(pid, SHORT_LOOK_S, &r->standing, e);

	if (!ret && why_host_blocks(&r->standing))
		ret = standing_look(pid, LONG_LOOK_S, &r->standing, e);
	if (ret)
		return ret;
	why_set_host(r->why, &r->standing);
	if (!why_host_blocks(&r->standing))
		return r->o->watch ? watch_start(&r->host, pid, e) : 0;
	ret = why_judge_host(r->why, &r->result, e);
	if (!ret)
		put_cost(r, &(struct visit_cost){ 0 });
	return ret ? ret : 1;
}

/* Called by the consumer thread, like the looks. */
static void see(void *ctx, const struct guest *g, const struct sample *s)
{
	struct why_run *r = ctx;

	why_sample(r->why, g, s);
}

static int why_first_look(void *ctx, struct guest *g, struct err *e)
{
	struct why_run *r = ctx;

	return why_look(r->why, g, e);
}

/* Begins again with a first look. */
static int why_forget_look(void *ctx, struct guest *g, struct err *e)
{
	struct why_run *r = ctx;

	why_repeat(r->why);
	(void)g;
	(void)e;
	return 0;
}

static int why_last_look(void *ctx, struct guest *g, struct err *e)
{
	struct why_run *r = ctx;
	int ret = why_look(r->why, g, e);

	json_decref(r->result);
	r->result = NULL;
	if (ret)
		return ret;
	r->longer = r->o->interval_s > 0 && why_wants_longer(r->why);
	return why_judge(r->why, g, &r->result, e);
}

/*
 * A vCPU that has been stopped for so long is not sampled further, once it has the samples that a verdict takes; the
 * last samples may be longer than usual, so this is less than the 5 ms that docs/why.md promises.
 */
#define STOPPED_MOST_NS 4000000u
#define SAMPLES_LEAST 6u
#define SAMPLES_MOST 16u
#define SLICE_MS 20.0

/* Waits while samples are taken, until there are enough of them or they have cost enough, and then without samples. */
static int sample_for(struct visit *v, struct why_run *r, double ms, struct err *e)
{
	struct visit_cost cost;
	int ret = 0;

	if (r->o->target.gdb || r->o->target.still)
		return visit_nap(v, ms, e);
	for (double left = ms; left > 0 && !ret; left -= SLICE_MS) {
		ret = visit_nap(v, left < SLICE_MS ? left : SLICE_MS, e);
		visit_cost(v, &cost);
		if (cost.stops - r->stops_before >= SAMPLES_MOST ||
		    (cost.stops - r->stops_before >= SAMPLES_LEAST &&
		     cost.stopped_ns >= STOPPED_MOST_NS))
			visit_sample(v, false);
	}
	return ret;
}

/* The additional time before another look at a guest whose clocks do not move. */
#define LONGER_MS 1600

static int look_again(struct visit *v, struct why_run *r, struct err *e)
{
	int ret;

	ret = visit_look(v, why_last_look, e);
	if (ret || !r->longer)
		return ret;
	ret = sample_for(v, r, LONGER_MS, e);
	return ret ? ret : visit_look(v, why_last_look, e);
}

static int look_twice(struct visit *v, void *ctx, struct err *e)
{
	struct why_run *r = ctx;
	struct visit_cost cost;
	int ret;

	ret = visit_look(v, why_first_look, e);
	visit_cost(v, &cost);
	r->stops_before = cost.stops;
	if (!ret && r->o->interval_s > 0)
		ret = sample_for(v, r, r->o->interval_s * 1e3, e);
	return ret ? ret : look_again(v, r, e);
}

/* -- the watch --------------------------------------------------------------------------- */

/* The time between two looks of --watch is a quarter of --hang-after, within these bounds. */
#define WATCH_LEAST_S 0.5
#define WATCH_MOST_S 5.0

static double watch_period_s(const struct why_options *o)
{
	const double s = o->hang_s / 4;

	return s < WATCH_LEAST_S ? WATCH_LEAST_S : s > WATCH_MOST_S ? WATCH_MOST_S : s;
}

static int why_watch_look(void *ctx, struct guest *g, struct err *e)
{
	struct why_run *r = ctx;
	int ret = why_last_look(ctx, g, e);

	r->suspects = !ret && why_suspects(r->why, r->result);
	why_repeat(r->why);
	return ret;
}

/* Looks at the host's side. Returns 1 with a result if that keeps the machine from running. */
static int watch_the_host(struct why_run *r, struct err *e)
{
	int ret;

	if (!r->host.started) /* a gdbstub's machine */
		return 0;
	ret = watch_look(&r->host, SHORT_LOOK_S, &r->standing, e);
	if (!ret && why_host_blocks(&r->standing))
		ret = watch_look(&r->host, LONG_LOOK_S, &r->standing, e);
	if (ret || !why_host_blocks(&r->standing))
		return ret;
	json_decref(r->result);
	r->result = NULL;
	ret = why_judge_host(r->why, &r->result, e);
	return ret ? ret : 1;
}

/* Samples the vCPUs as `why` without --watch does. Returns 1 if something is wrong. */
static int watch_closely(struct visit *v, struct why_run *r, struct err *e)
{
	struct visit_cost cost;
	int ret;

	visit_cost(v, &cost);
	r->stops_before = cost.stops;
	ret = sample_for(v, r, r->o->interval_s * 1e3, e);
	ret = ret ? ret : look_again(v, r, e);
	return ret ? ret : why_status(r->result) != 0;
}

/* Looks again and again, and stops no vCPU, until a look gives a reason to sample and the samples confirm it. */
static int keep_watching(struct visit *v, void *ctx, struct err *e)
{
	const double period_s = watch_period_s(((struct why_run *)ctx)->o);
	struct why_run *r = ctx;
	int ret = visit_look(v, why_first_look, e);

	while (!ret) {
		visit_sample(v, false);
		ret = watch_the_host(r, e);
		ret = ret ? ret : visit_nap(v, period_s * 1e3, e);
		ret = ret ? ret : visit_look(v, why_watch_look, e);
		if (ret || !r->suspects)
			continue;
		visit_sample(v, true);
		ret = watch_closely(v, r, e);
		if (!ret)
			ret = visit_look(v, why_forget_look, e);
	}
	return ret > 0 || ret == -ESRCH ? 0 : ret;
}

#define OPTION_STRUCT struct why_options

static const struct option_row why_rows[] = {
	OPTION_ROWS(cmd_target_rows, target),
	{ "interval", 0, "SECONDS",
	  "the time between the two looks (default 0.3); 0: one look,\n"
	  "and what needs two is not known",
	  OPTION_SECONDS(interval_s, 0, 3600, "0 to 3600 seconds") },
	{ "hang-after", 0, "SECONDS", "what has made no progress for so long is wrong (default 10)",
	  OPTION_SECONDS(hang_s, 0.1, 86400, "0.1 to 86400 seconds") },
	{ "watch", 0, NULL,
	  "look again and again, without stopping the guest, until something\n"
	  "is wrong or the guest ends, and explain it",
	  OPTION_PUT(watch, true) },
	{ "json", 0, NULL, "as JSON: one object", OPTION_PUT(json, true) },
	OPTION_HELP,
	{ 0 },
};

static const struct option_set why_set = {
	.usage = "Usage: kvmprof why [OPTIONS] PID|DOMAIN|SNAPSHOT\n"
		 "       kvmprof why [OPTIONS] --gdb HOST:PORT\n"
		 "\n"
		 "Why a guest stands still or crawls: two looks from outside at a machine that "
		 "another\n"
		 "VMM runs (see `kvmprof attach`), and a verdict with its proof. Nothing is "
		 "written.\n"
		 "Exit status: 0: runs well, 10: a cause was found, 11: something is wrong and the "
		 "cause is\n"
		 "not known, 1: it could not be looked at.\n"
		 "\n",
	.rows = why_rows,
	.column = 26,
};

static int print_result(const struct why_options *o, const json_t *result, struct err *e)
{
	struct buf b;
	char *text;

	if (o->json) {
		text = json_dumps(result, JSON_COMPACT);
		if (!text)
			return err_nomem(e);
		puts(text);
		free(text);
		return 0;
	}
	buf_init(&b);
	why_print(result, &b);
	if (!b.failed)
		fwrite(b.data, 1, b.len, stdout);
	buf_deinit(&b);
	return b.failed ? err_nomem(e) : 0;
}

int cmd_why(int argc, char **argv)
{
	struct why_options o = { .interval_s = 0.3, .hang_s = 10 };
	struct why_run r = { .o = &o, .start_ns = clock_mono_ns() };
	struct visit_request request = {
		.command = "why",
		.reporter = &cmd_reporter,
		.freq_hz = FREQ_HZ,
		.explains = true,
		.found = look_at_host,
		.seen = see,
		.ctx = &r,
		.body = look_twice,
		.ended = add_cost,
	};
	int status = cmd_options(&why_set, &o, argc, argv), ret;
	struct err e = { 0 };

	if (status < 0)
		status = cmd_target_parse(&o.target, argc, argv);
	if (status >= 0)
		return status;
	cmd_target_visit(&o.target, &request);
	if (o.watch && o.target.still)
		return cmd_wrong(argv, "--watch is for a machine that runs, not for a snapshot");
	if (o.watch)
		request.body = keep_watching;
	ret = why_create(&r.why, (uint64_t)(o.hang_s * 1e9), &e);
	if (!ret && o.target.still)
		why_set_still(r.why);
	ret = ret ? ret : visit_machine(&request, &e);
	ret = ret || !r.result ? ret : print_result(&o, r.result, &e);
	if (ret)
		fprintf(stderr, "kvmprof why: %s\n", e.text);
	status = ret ? 1 : why_status(r.result);
	watch_end(&r.host);
	why_destroy(r.why);
	json_decref(r.result);
	return status;
}

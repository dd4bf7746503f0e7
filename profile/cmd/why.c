/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_why: `kvmprof why`: a guest that stands still, explained from outside.
 */
#include "profile/cmd/cmd.h"

#include "base/clock.h"
#include "base/err.h"
#include "profile/cmd/common.h"
#include "profile/cmd/target.h"
#include "profile/record/run/visit.h"
#include "profile/record/why/why.h"
#include "vmm/attach/standing.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* Samples a second. About twenty between the looks stop each vCPU for a few milliseconds in all. */
#define FREQ_HZ 37
#define SHORT_LOOK_S 0.2
#define LONG_LOOK_S 1.0

struct why_options {
	struct cmd_target target;
	double interval_s, hang_s;
	bool json;
};

struct why_run {
	const struct why_options *o;
	struct why *why;
	struct standing standing;
	json_t *result;
	uint64_t start_ns;
	bool longer; /* a later second look would prove more */
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
		return 0;
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

/* The additional time before another look at a guest whose clocks do not move. */
#define LONGER_MS 1600

static int look_again(struct visit *v, struct why_run *r, struct err *e)
{
	int ret;

	ret = visit_look(v, why_last_look, e);
	if (ret || !r->longer)
		return ret;
	ret = visit_nap(v, LONGER_MS, e);
	return ret ? ret : visit_look(v, why_last_look, e);
}

static int look_twice(struct visit *v, void *ctx, struct err *e)
{
	struct why_run *r = ctx;
	int ret;

	ret = visit_look(v, why_first_look, e);
	if (!ret && r->o->interval_s > 0)
		ret = visit_nap(v, r->o->interval_s * 1e3, e);
	return ret ? ret : look_again(v, r, e);
}

#define OPTION_STRUCT struct why_options

static const struct option_row why_rows[] = {
	OPTION_ROWS(cmd_target_rows, target),
	{ "interval", 0, "SECONDS",
	  "the time between the two looks (default 0.5); 0: one look,\n"
	  "and what needs two is not known",
	  OPTION_SECONDS(interval_s, 0, 3600, "0 to 3600 seconds") },
	{ "hang-after", 0, "SECONDS", "what has made no progress for so long is wrong (default 10)",
	  OPTION_SECONDS(hang_s, 0.1, 86400, "0.1 to 86400 seconds") },
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
	struct why_options o = { .interval_s = 0.5, .hang_s = 10 };
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
	ret = why_create(&r.why, (uint64_t)(o.hang_s * 1e9), &e);
	if (!ret && o.target.still)
		why_set_still(r.why);
	ret = ret ? ret : visit_machine(&request, &e);
	ret = ret ? ret : print_result(&o, r.result, &e);
	if (ret)
		fprintf(stderr, "kvmprof why: %s\n", e.text);
	status = ret ? 1 : why_status(r.result);
	why_destroy(r.why);
	json_decref(r.result);
	return status;
}

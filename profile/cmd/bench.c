/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_bench: `kvmprof bench`: make runs of a base and a head in turn, and let the gate judge.
 */
#include "profile/cmd/cmd.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/signals.h"
#include "profile/compare/bench/bench.h"
#include "profile/cmd/common.h"
#include "profile/compare/gate/exact.h"
#include "profile/compare/gate/gate.h"
#include "profile/compare/gate/text.h"
#include "profile/compare/gate/write.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define PAIRS 10u
#define WARMUP 1u
#define NOT_GIVEN UINT_MAX
#define TIMEOUT_S 600.0
/* As perf's periods: a prime, so that nothing in the guest runs in step with it */
#define INSTRUCTIONS "100003"
#define INTERRUPTED 130 /* 128 + SIGINT, as shells have it */

enum bench_engine { ENGINE_KVM, ENGINE_EXACT };

struct cmd_bench_options {
	struct bench_options bench;
	const char *config;
	const struct gate_format *format;
	enum bench_engine engine;
	bool deterministic, strict_event, quiet, seeded;
};

struct bench_state {
	struct cmd_bench_options o;
	struct gate_rules *rules;
	struct gate *gate, *again; /* gate of the comparison, and of A/A or NULL */
	struct bench *bench;
	char *exact[GATE_SIDE_MAX]; /* with --engine exact: each side's run */
};

/* -- arguments ----------------------------------------------------------------------------------- */

static int parse_args(void *at, char *arg, struct err *e)
{
	struct bench_args *a = at;

	bench_args_deinit(a);
	return bench_args_parse(a, arg, e);
}

static int parse_vmm(void *at, char *arg, struct err *e)
{
	const struct bench_args *a = at;
	int ret = parse_args(at, arg, e);

	return ret || a->n ? ret : err_set(e, EINVAL, "expected a command");
}

static int parse_pin(void *at, char *arg, struct err *e)
{
	struct bench_options *b = at;

	b->cpus = arg;
	return bench_cpus_parse(&b->pin, arg, e);
}

static int parse_seed(void *at, char *arg, struct err *e)
{
	struct cmd_bench_options *o = at;

	(void)e;
	o->seeded = true;
	return number_whole(arg, 0, UINT64_MAX, &o->bench.seed) ? 0 : -EINVAL;
}

static int parse_format(void *at, char *arg, struct err *e)
{
	struct cmd_bench_options *o = at;

	(void)e;
	o->format = gate_format_find(arg);
	return o->format ? 0 : -EINVAL;
}

#define OPTION_STRUCT struct cmd_bench_options

static const char *const engines[] = { "kvm", "exact", NULL };

static const struct option_row rows[] = {
	OPTION_HEADING("What runs:\n"),
	{ "base", 0, "KERNEL", "image of the base (default: the demo guest)",
	  OPTION_TEXT_OF(bench.image[0], "a file") },
	{ "head", 0, "KERNEL", "image of the head (default: the demo guest)",
	  OPTION_TEXT_OF(bench.image[1], "a file") },
	{ "base-vmm", 0, "COMMAND",
	  "VMM of the base with its arguments, split as by a shell: each\n"
	  "run is a `kvmprof attach -- COMMAND'",
	  OPTION_CALL_AT(parse_vmm, bench.vmm[0], NULL) },
	{ "head-vmm", 0, "COMMAND", "VMM of the head",
	  OPTION_CALL_AT(parse_vmm, bench.vmm[1], NULL) },
	{ "base-args", 0, "TEXT", "further run options of the base, split as by a shell",
	  OPTION_CALL_AT(parse_args, bench.args[0], NULL) },
	{ "head-args", 0, "TEXT", "further run options of the head",
	  OPTION_CALL_AT(parse_args, bench.args[1], NULL) },
	{ "engine", 0, "WHAT",
	  "kvm (default), or exact: one run of each side, in which every\n"
	  "instruction is counted, judged as by `kvmprof gate --exact'",
	  OPTION_WORD(engine, engines) },
	{ "pin", 0, "CPUS", "run on these CPUs only, such as 1 or 0,2-3",
	  OPTION_CALL_AT(parse_pin, bench, NULL) },
	{ "timeout", 0, "SECONDS",
	  "end a run that takes longer; it counts as failed\n"
	  "(default 600)",
	  OPTION_SECONDS(bench.timeout_s, 0.1, 1e6, "seconds") },
	{ "deterministic", 0, NULL,
	  "sample by guest instructions instead of time, where the\n"
	  "host can count them; otherwise report that and sample time",
	  OPTION_PUT(deterministic, true) },
	{ "strict-event", 0, NULL, "fail instead of sampling time",
	  OPTION_PUT(strict_event, true) },
	OPTION_HEADING("\nHow often:\n"),
	{ "runs", 'n', "N", "runs of each side, 2 to 256 (default 10)",
	  OPTION_WHOLE(bench.pairs, 2, STATS_MAX_RUNS, "a number from 2 to 256") },
	{ "warmup", 0, "N", "runs of each side that are discarded (default 1)",
	  OPTION_WHOLE(bench.warmup, 0, 100, "a number from 0 to 100") },
	{ "aa", 0, NULL,
	  "run the base a second time in each turn, and apply the\n"
	  "rules to it: they pass unless the host is too noisy",
	  OPTION_PUT(bench.again, true) },
	{ "seed", 0, "SEED", "seed of the order (default: from the clock; printed)",
	  OPTION_CALL(parse_seed, "a number") },
	OPTION_HEADING("\nJudgement and output:\n"),
	{ "config", 0, "FILE", "rules (TOML; default: those of `kvmprof gate`)",
	  OPTION_TEXT_OF(config, "a file") },
	{ "format", 0, "WHAT", "text, markdown, junit, sarif, github or json",
	  OPTION_CALL(parse_format, "text, markdown, junit, sarif, github or json") },
	{ "output", 'o', "DIR",
	  "directory for the runs (default: bench); an existing one\n"
	  "becomes DIR.old",
	  OPTION_TEXT_OF(bench.dir, "a directory") },
	{ "quiet", 'q', NULL, "no line for each turn", OPTION_PUT(quiet, true) },
	OPTION_HELP,
	{ 0 },
};

static const struct option_set set = {
	.usage =
		"Usage: kvmprof bench [OPTIONS] [-- RUN OPTIONS]\n"
		"       kvmprof bench [OPTIONS] --base-vmm COMMAND --head-vmm COMMAND [-- ATTACH "
		"OPTIONS]\n"
		"\n"
		"Run a base and a head in turn, each in a `kvmprof run` of its own, and judge as\n"
		"`kvmprof gate` does. RUN OPTIONS go to every run. With --base-vmm and --head-vmm\n"
		"each run is a `kvmprof attach` that starts the VMM, such as\n"
		"-- --until console:login:\n"
		"\n",
	.after = "\n"
		 "Exit status: 0 pass, 1 fail or error, 2 wrong usage, 3 inconclusive, 130 "
		 "interrupted\n",
	.rows = rows,
	.order = OPTION_FIRST,
};

/* The first option that is about several runs, or NULL. */
static const char *bench_not_exact(const struct cmd_bench_options *o)
{
	if (o->bench.pairs != NOT_GIVEN)
		return "--runs";
	if (o->bench.warmup != NOT_GIVEN)
		return "--warmup";
	if (o->bench.again)
		return "--aa";
	return o->deterministic ? "--deterministic" : NULL;
}

/* -1: go on; else the exit status. */
static int bench_check_vmms(const struct cmd_bench_options *o, char **argv)
{
	const struct bench_options *b = &o->bench;

	if (!b->vmm[0].n && !b->vmm[1].n)
		return -1;
	if (!b->vmm[0].n || !b->vmm[1].n)
		return cmd_wrong_usage(
			argv, "a VMM is compared with another one: the other side is missing:",
			b->vmm[0].n ? "--head-vmm" : "--base-vmm");
	if (b->image[0] || b->image[1])
		return cmd_wrong_usage(argv, "each side is either a kernel or a VMM; unexpected",
				       b->image[0] ? "--base" : "--head");
	if (o->engine == ENGINE_EXACT || o->deterministic)
		return cmd_wrong_usage(argv, "runs of VMMs are sampled by time; unexpected",
				       o->deterministic ? "--deterministic" : "--engine exact");
	for (size_t i = 0; i < b->common.n; i++)
		if (!strcmp(b->common.word[i], "--"))
			return cmd_wrong_usage(argv,
					       "the VMM is the value of --base-vmm and --head-vmm; "
					       "unexpected behind --:",
					       i + 1 < b->common.n ? b->common.word[i + 1] : "--");
	return -1;
}

static int bench_settle(struct cmd_bench_options *o, char **argv)
{
	struct bench_options *b = &o->bench;
	int status = bench_check_vmms(o, argv);

	if (status >= 0)
		return status;
	if (o->engine == ENGINE_EXACT) {
		const char *name = bench_not_exact(o);

		if (name)
			return cmd_wrong_usage(argv,
					       "--engine exact makes one run of each side: leave "
					       "this out:",
					       name);
		b->pairs = 1;
		b->warmup = 0;
	}
	b->pairs = b->pairs == NOT_GIVEN ? PAIRS : b->pairs;
	b->warmup = b->warmup == NOT_GIVEN ? WARMUP : b->warmup;
	return -1;
}

/* -1: go on; else the exit status. */
static int bench_parse(struct cmd_bench_options *o, int argc, char **argv)
{
	int status = cmd_options(&set, o, argc, argv);

	if (status >= 0)
		return status;
	if (optind < argc && strcmp(argv[optind - 1], "--") != 0)
		return cmd_wrong_usage(argv,
				       "give kernels with --base and --head, and run options after "
				       "--; unexpected argument",
				       argv[optind]);
	for (; optind < argc; optind++) {
		if (o->bench.common.n == BENCH_ARGS_MAX)
			return cmd_wrong_usage(argv, "too many run options at", argv[optind]);
		o->bench.common.word[o->bench.common.n++] = argv[optind];
	}
	return bench_settle(o, argv);
}

/* -- before the first run ------------------------------------------------------------------------ */

/* In front of the user's, which win. */
static int bench_add_words(struct bench_args *a, char *const *words, size_t n, struct err *e)
{
	if (a->n + n > BENCH_ARGS_MAX)
		return err_set(e, E2BIG, "more than %u run options", BENCH_ARGS_MAX);
	memmove(a->word + n, a->word, a->n * sizeof(a->word[0]));
	memcpy(a->word, words, n * sizeof(a->word[0]));
	a->n += n;
	return 0;
}

static int bench_choose_event(struct cmd_bench_options *o, struct err *e)
{
	static char event[] = "-e", instructions[] = "instructions", count[] = "-c",
		    period[] = INSTRUCTIONS, engine[] = "--engine", exact[] = "exact",
		    counts[] = "--call-counts";
	static char *const words[] = { event, instructions, count, period };
	static char *const exact_words[] = { engine, exact, counts };
	struct err why = { 0 };

	if (o->engine == ENGINE_EXACT)
		return bench_add_words(&o->bench.common, exact_words, ARRAY_SIZE(exact_words), e);
	if (!o->deterministic)
		return 0;
	if (bench_counter_check(&why)) {
		if (o->strict_event)
			return err_set(e, why.code, "--deterministic: %s", why.text);
		fprintf(stderr, "kvmprof: --deterministic: %s; sampling by time instead\n",
			why.text);
		return 0;
	}
	return bench_add_words(&o->bench.common, words, ARRAY_SIZE(words), e);
}

static int bench_prepare(struct bench_state *s, struct err *e)
{
	struct bench_options *b = &s->o.bench;
	bool exact = s->o.engine == ENGINE_EXACT;
	int ret = (exact	 ? gate_rules_load_exact
		   : b->vmm[0].n ? gate_rules_load_vmm
				 : gate_rules_load)(&s->rules, s->o.config, e);

	if (ret)
		return ret;
	ret = bench_choose_event(&s->o, e);
	if (ret)
		return ret;
	ret = gate_create(&s->gate, s->rules, e);
	if (!ret && b->again)
		ret = gate_create(&s->again, s->rules, e);
	if (ret)
		return ret;
	signals_set(SIGNALS_REPORT);
	b->stop_fd = signals_fd();
	ret = bench_create(&s->bench, b, e);
	if (ret)
		return ret;
	if (exact)
		fprintf(stderr, "kvmprof: an exact run of each side, in %s\n", b->dir);
	else
		fprintf(stderr, "kvmprof: %u runs of each side, seed %" PRIu64 ", in %s\n",
			b->pairs, b->seed, b->dir);
	for (unsigned int i = 0; i < b->warmup && !ret; i++)
		ret = bench_warm_up(s->bench, e);
	return ret;
}

/* -- runs ---------------------------------------------------------------------------------------- */

static const char *const arm_name[BENCH_ARM_MAX] = { "base", "head", "base again" };

static void bench_print_pair(const struct bench_state *s, const struct bench_pair *p)
{
	if (!s->o.quiet) {
		fprintf(stderr, "kvmprof: %u of %u:", p->number, s->o.bench.pairs);
		for (unsigned int a = 0; a < BENCH_ARM_MAX; a++)
			if (p->ran[a])
				fprintf(stderr, "%s %s %.2f s", a ? "," : "", arm_name[a],
					p->outcome[a].seconds);
		fputc('\n', stderr);
	}
	for (unsigned int a = 0; a < BENCH_ARM_MAX && !p->interrupted; a++) {
		char end[64], words[200];

		if (!p->ran[a] || p->outcome[a].end == BENCH_FINE)
			continue;
		bench_outcome_text(&p->outcome[a], end);
		bench_last_log_line(s->bench, p, (enum bench_arm)a, words, sizeof(words));
		fprintf(stderr, "kvmprof: run %s failed (%s; %s/failed): %s\n", p->path[a], end,
			s->o.bench.dir, words);
	}
}

/* Where a run is: the caller's. */
static int bench_run_path(char **out, const struct bench_state *s, const char *name, struct err *e)
{
	if (asprintf(out, "%s/%s", s->o.bench.dir, name) >= 0)
		return 0;
	*out = NULL;
	return err_nomem(e);
}

static int bench_load_run(struct gate *g, enum gate_side side, const struct bench_state *s,
			  const char *name, struct err *e)
{
	cleanup_free char *path = NULL;
	int ret = bench_run_path(&path, s, name, e);

	return ret ? ret : gate_add(g, side, path, NULL, e);
}

static int bench_load_pair(struct bench_state *s, const struct bench_pair *p, struct err *e)
{
	int ret;

	if (s->o.engine == ENGINE_EXACT) {
		ret = bench_run_path(&s->exact[GATE_BASE], s, p->path[BENCH_BASE], e);
		return ret ? ret : bench_run_path(&s->exact[GATE_HEAD], s, p->path[BENCH_HEAD], e);
	}
	ret = bench_load_run(s->gate, GATE_BASE, s, p->path[BENCH_BASE], e);
	if (ret)
		return ret;
	ret = bench_load_run(s->gate, GATE_HEAD, s, p->path[BENCH_HEAD], e);
	if (ret || !s->again)
		return ret;
	ret = bench_load_run(s->again, GATE_BASE, s, p->path[BENCH_BASE], e);
	if (ret)
		return ret;
	return bench_load_run(s->again, GATE_HEAD, s, p->path[BENCH_AGAIN], e);
}

/* 0, -EINTR: the user wants an end, or an error. */
static int bench_run_all(struct bench_state *s, struct err *e)
{
	while (bench_pairs_made(s->bench) < s->o.bench.pairs) {
		struct bench_pair p;
		unsigned int failures = 0;
		int ret = bench_next(s->bench, &p, e);

		if (ret)
			return ret;
		if (p.interrupted)
			return err_set(e, EINTR, "interrupted");
		bench_print_pair(s, &p);
		for (unsigned int a = 0; a < BENCH_ARM_MAX; a++)
			failures += bench_failures(s->bench, (enum bench_arm)a);
		if (failures >= BENCH_FAILURES_MAX)
			return err_set(e, EIO, "%u runs failed (%u of the base, %u of the head)",
				       failures,
				       bench_failures(s->bench, BENCH_BASE) +
					       bench_failures(s->bench, BENCH_AGAIN),
				       bench_failures(s->bench, BENCH_HEAD));
		ret = p.complete ? bench_load_pair(s, &p, e) : 0;
		if (ret)
			return ret;
	}
	return 0;
}

/* -- judgement ----------------------------------------------------------------------------------- */

/* The result of the same rules for the base against itself. */
static int bench_print_noise(struct bench_state *s, struct err *e)
{
	struct gate_eval_options opt = { .seed = s->o.bench.seed };
	struct gate_report *r = NULL;
	char text[480];
	int ret = gate_evaluate(s->again, &opt, &r, e);

	if (ret)
		return ret;
	gate_text_verdict(text, sizeof(text), r);
	fprintf(stderr, "kvmprof: noise floor, base against base again: %s\n", text);
	for (size_t i = 0; i < r->n; i++) {
		gate_text_outcome(text, sizeof(text), &r->outcome[i]);
		fprintf(stderr, "kvmprof:   %s: %s: %s\n", r->outcome[i].rule->name,
			gate_status_name(r->outcome[i].status), text);
	}
	if (r->status == GATE_FAILED)
		fputs("kvmprof: warning: the base differs from itself: this host is too noisy for "
		      "a verdict\n",
		      stderr);
	gate_report_destroy(r);
	return 0;
}

static int bench_evaluate(struct bench_state *s, struct gate_report **out, struct err *e)
{
	struct gate_eval_options opt = { .seed = s->o.bench.seed };

	if (s->o.engine == ENGINE_KVM)
		return gate_evaluate(s->gate, &opt, out, e);
	if (!s->exact[GATE_BASE] || !s->exact[GATE_HEAD])
		return err_set(e, EIO,
			       "there is nothing to compare: %s/failed has the run that failed",
			       s->o.bench.dir);
	return gate_evaluate_exact(s->gate, s->exact[GATE_BASE], s->exact[GATE_HEAD], out, e);
}

static void bench_print_kept(const struct bench_state *s)
{
	const char *dir = s->o.bench.dir;

	if (s->o.engine == ENGINE_EXACT)
		fprintf(stderr,
			"kvmprof: the runs are kept: kvmprof gate --exact --base %s --head %s\n",
			s->exact[GATE_BASE], s->exact[GATE_HEAD]);
	else
		fprintf(stderr,
			"kvmprof: the runs are kept: kvmprof gate --base %s/base-*[0-9] --head "
			"%s/head-*[0-9]\n",
			dir, dir);
}

/* The exit status, or -errno. */
static int bench_judge(struct bench_state *s, struct err *e)
{
	struct gate_write_options how = { .flamegraph = NULL };
	struct gate_report *r = NULL;
	struct buf out;
	int ret;

	ret = s->again ? bench_print_noise(s, e) : 0;
	if (ret)
		return ret;
	ret = bench_evaluate(s, &r, e);
	if (ret)
		return ret;
	buf_init(&out);
	ret = s->o.format->write(&out, r, &how, e);
	if (!ret && out.failed)
		ret = err_nomem(e);
	if (!ret)
		fwrite(out.data, 1, out.len, stdout);
	buf_deinit(&out);
	ret = ret ? ret : gate_exit_status(r);
	gate_report_destroy(r);
	fflush(stdout);
	bench_print_kept(s);
	return ret;
}

static int run_bench(struct bench_state *s)
{
	struct err e = { 0 }, ignored = { 0 };
	int ret = bench_prepare(s, &e);

	ret = ret ? ret : bench_run_all(s, &e);
	if (s->bench)
		bench_close(s->bench,
			    ret == -EINTR ? "interrupted"
			    : ret	  ? "failed"
					  : "complete",
			    ret ? &ignored : &e);
	if (!ret)
		ret = bench_judge(s, &e);
	if (ret == -EINTR) {
		fprintf(stderr, "kvmprof: interrupted; %s keeps the %u runs of each side\n",
			s->o.bench.dir, gate_runs(s->gate, GATE_BASE));
		return INTERRUPTED;
	}
	if (ret < 0)
		fprintf(stderr, "kvmprof: %s\n", e.text);
	return ret < 0 ? 1 : ret;
}

int cmd_bench(int argc, char **argv)
{
	cleanup_free struct bench_state *s = calloc(1, sizeof(*s)); /* many words */
	int status;

	if (!s)
		return cmd_no_memory();
	s->o.bench.dir = "bench";
	s->o.bench.pairs = NOT_GIVEN;
	s->o.bench.warmup = NOT_GIVEN;
	s->o.bench.timeout_s = TIMEOUT_S;
	s->o.bench.stop_fd = -1;
	s->o.format = gate_format_find("text");
	status = bench_parse(&s->o, argc, argv);
	if (status < 0) {
		if (!s->o.seeded)
			s->o.bench.seed = clock_ns(CLOCK_REALTIME) % 1000000000;
		status = run_bench(s);
	}
	bench_destroy(s->bench);
	gate_destroy(s->again);
	gate_destroy(s->gate);
	gate_rules_destroy(s->rules);
	for (unsigned int side = 0; side < GATE_SIDE_MAX; side++)
		free(s->exact[side]);
	for (unsigned int side = 0; side < GATE_SIDE_MAX; side++) {
		bench_args_deinit(&s->o.bench.args[side]);
		bench_args_deinit(&s->o.bench.vmm[side]);
	}
	return status;
}

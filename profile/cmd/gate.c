/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/cmd.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/outfile.h"
#include "profile/cmd/common.h"
#include "profile/analyse/flame/svg.h"
#include "profile/compare/gate/exact.h"
#include "profile/compare/gate/text.h"
#include "profile/compare/gate/write_json.h"
#include "profile/compare/gate/series_write.h"

#include <errno.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct gate_options {
	struct cmd_runs side[GATE_SIDE_MAX];
	struct cmd_runs *last_side; /* whose runs the words are that follow; NULL: nobody's */
	const char *option;	    /* name of the last one */
	const char *config, *output;
	const struct gate_format *format;
	struct gate_outputs outputs;
	struct gate_eval_options eval;
	const char *history, *label, *html;
	struct gate_acceptance accept[GATE_HISTORY_ACCEPTED];
	unsigned int naccept;
	const char *by, *why;
	bool record, exact, strict;
	time_t at;
	unsigned long last, recent;
};

/* -- history -------------------------------------------------------------------------------- */

static int gate_record_runs(const struct gate_options *o, const struct gate_rules *rules,
			    struct err *e)
{
	const struct cmd_runs *s = &o->side[GATE_HEAD];
	cleanup_free struct gate_run **run = calloc(s->n, sizeof(struct gate_run *));
	char file[GATE_HISTORY_FILE];
	struct gate *g = NULL;
	int ret = run ? gate_create(&g, rules, e) : err_nomem(e);

	/* A gate has each run once. */
	for (unsigned int i = 0; i < s->n && !ret; i++) {
		ret = gate_run_load(&run[i], s->path[i], rules, e);
		if (ret)
			break;
		ret = gate_check_fresh(g, GATE_HEAD, run[i], e);
		if (ret)
			gate_run_destroy(run[i]);
		else
			ret = gate_add_run(g, GATE_HEAD, run[i], e);
	}
	ret = ret ? ret
		  : gate_history_record(o->history,
					&(struct gate_history_runs){ o->label, o->at, rules, run,
								     s->n, o->accept, o->naccept },
					file, e);
	if (!ret)
		fprintf(stderr, "kvmprof: recorded %u runs of %s in %s/%s\n", s->n, o->label,
			o->history, file);
	gate_destroy(g);
	return ret;
}

static int gate_show_history(const struct gate_options *o, const struct gate_rules *rules,
			     int *status, struct err *e)
{
	struct gate_history *h = NULL;
	struct gate_series *s = NULL;
	struct buf b;
	int ret = gate_history_load(&h, o->history, o->last, e);

	if (ret)
		return ret;
	buf_init(&b);
	if (h->refused)
		fprintf(stderr, "kvmprof: %zu file%s left out: %s\n", h->refused,
			h->refused == 1 ? "" : "s", h->why.text);
	ret = gate_series_find(&s, h, rules, (unsigned int)o->recent, o->eval.seed, e);
	if (!ret) {
		*status = gate_series_exit_status(s);
		ret = (o->format->write == gate_write_json
			       ? gate_series_write_json
			       : gate_series_write_text)(&b, s, o->history, e);
	}
	if (!ret)
		ret = b.failed ? err_nomem(e)
			       : outfile_write(o->output ? o->output : "-", b.data, b.len, e);
	if (!ret && o->html) {
		b.len = 0;
		ret = gate_series_write_html(&b, s, o->history, e);
		ret = ret ? ret : outfile_write(o->html, b.data, b.len, e);
	}
	buf_deinit(&b);
	gate_series_destroy(s);
	gate_history_destroy(h);
	return ret;
}

static int gate_history_command(const struct gate_options *o, const struct gate_rules *rules,
				int *status, struct err *e)
{
	int ret = o->record ? gate_record_runs(o, rules, e) : 0;

	return ret ? ret : gate_show_history(o, rules, status, e);
}

/* -- comparing ------------------------------------------------------------------------------- */

static int gate_load_runs(struct gate *g, const struct gate_options *o, struct err *e)
{
	for (unsigned int s = 0; s < GATE_SIDE_MAX; s++)
		for (unsigned int i = 0; i < o->side[s].n; i++) {
			const struct gate_run *run;
			int ret = gate_add(g, (enum gate_side)s, o->side[s].path[i], &run, e);

			if (ret)
				return ret;
			if (run->message[0])
				fprintf(stderr, "kvmprof: %s: %s\n", run->path, run->message);
		}
	return 0;
}

/* --strict: a report on runs that were not made alike is none. */
static int gate_check_means(const struct gate_report *r, struct err *e)
{
	char text[GATE_SENTENCE];

	gate_text_means(text, sizeof(text), r);
	return *text ? err_set(e, EINVAL, "--strict: %s", text) : 0;
}

static int gate_compare_runs(const struct gate_options *o, struct gate_rules *rules, int *status,
			     struct err *e)
{
	struct gate_report *r = NULL;
	struct gate *g = NULL;
	int ret = 0;

	for (unsigned int i = 0; i < o->naccept && !ret; i++)
		ret = gate_rules_accept(rules, &o->accept[i], e);
	ret = ret ? ret : gate_create(&g, rules, e);
	if (!ret && o->exact)
		ret = gate_evaluate_exact(g, o->side[GATE_BASE].path[0], o->side[GATE_HEAD].path[0],
					  &r, e);
	else if (!ret)
		ret = gate_load_runs(g, o, e);
	ret = ret || o->exact ? ret : gate_evaluate(g, &o->eval, &r, e);
	ret = ret || !o->strict ? ret : gate_check_means(r, e);
	ret = ret ? ret : gate_outputs_write(&o->outputs, r, e);
	if (!ret)
		*status = gate_exit_status(r);
	gate_report_destroy(r);
	gate_destroy(g);
	return ret;
}

/* -- options --------------------------------------------------------------------------------- */

static void note_option(void *at, const struct option_row *row)
{
	struct gate_options *o = at;

	o->last_side = NULL;
	o->option = row->name;
}

static int parse_base(void *at, char *arg, struct err *e)
{
	struct gate_options *o = at;

	o->last_side = &o->side[GATE_BASE];
	return cmd_runs_add_list(o->last_side, arg, e);
}

static int parse_head(void *at, char *arg, struct err *e)
{
	struct gate_options *o = at;

	o->last_side = &o->side[GATE_HEAD];
	return cmd_runs_add_list(o->last_side, arg, e);
}

/* Words that follow --base or --head. */
static int take_word(void *at, char *arg, struct err *e)
{
	struct gate_options *o = at;

	if (!o->last_side)
		return err_set(e, EINVAL,
			       "unexpected argument '%.200s': runs follow --base or --head", arg);
	return cmd_runs_add_list(o->last_side, arg, e);
}

static int parse_accept(void *at, char *arg, struct err *e)
{
	struct gate_options *o = at;

	if (o->naccept == GATE_HISTORY_ACCEPTED)
		return err_set(e, E2BIG, "--accept: at most %u rules", GATE_HISTORY_ACCEPTED);
	o->accept[o->naccept++].rule = arg;
	return 0;
}

static int parse_time(void *at, char *arg, struct err *e)
{
	struct tm tm = { 0 };
	const char *end = strptime(arg, "%Y-%m-%dT%H:%M:%SZ", &tm);

	(void)e;
	if (!end || *end)
		return -EINVAL;
	*(time_t *)at = timegm(&tm);
	return 0;
}

static int parse_format(void *at, char *arg, struct err *e)
{
	const struct gate_format **format = at;

	(void)e;
	*format = gate_format_find(arg);
	return *format ? 0 : -EINVAL;
}

/* The option has the name of the format. */
static int parse_output(void *at, char *arg, struct err *e)
{
	struct gate_options *o = at;

	return gate_outputs_add(&o->outputs, gate_format_find(o->option)->write, arg, e);
}

#define OPTION_STRUCT struct gate_options

static const struct option_row rows[] = {
	{ "base", 0, "FILE...", "profiles of the base: files or directories, several",
	  OPTION_CALL(parse_base, NULL) },
	{ "head", 0, "FILE...", "profiles of the change: files or directories, several",
	  OPTION_CALL(parse_head, NULL) },
	{ "config", 'c', "FILE",
	  "rules in TOML (default: run time, functions, new\n"
	  "functions, exits)",
	  OPTION_TEXT_OF(config, "a file") },
	{ "exact", 0, NULL,
	  "one run a side, of run --engine exact: each difference counts\n"
	  "(default rules: instructions, functions, system calls, stacks)",
	  OPTION_PUT(exact, true) },
	{ "error-rate", 0, "X", "instead of the rules' (0.01)",
	  OPTION_REAL(eval.error_rate, DBL_MIN, 0.5, "a rate above 0, at most 0.5") },
	{ "seed", 0, "N", "seed of the random numbers (default: 1)",
	  OPTION_WHOLE(eval.seed, 1, UINT64_C(1) << 62, "a whole number from 1 on") },
	{ "unpaired", 0, NULL, "ignore the order of the runs",
	  OPTION_PUT(eval.pairing, STATS_FREE) },
	{ "accept", 0, "RULE", "make this rule only warn; also for a step in the history",
	  OPTION_CALL(parse_accept, NULL) },
	{ "by", 0, "WHO", "who accepts it", OPTION_TEXT(by) },
	{ "why", 0, "TEXT", "and why: both are in the reports and in the history",
	  OPTION_TEXT(why) },
	{ "strict", 0, NULL,
	  "no verdict (status 2) if the runs were not made in the same way: vCPUs, memory,\n"
	  "command line, frequency, host processor or kvmprof differ, or\n"
	  "a run is on both sides",
	  OPTION_PUT(strict, true) },
	OPTION_HEADING("\n"),
	{ "format", 'f', "FORMAT", "text (default), markdown, junit, sarif, github, json or badge",
	  OPTION_CALL_AT(parse_format, format,
			 "text, markdown, junit, sarif, github, json or badge") },
	{ "output", 'o', "FILE", "write there (default: -, standard output)",
	  OPTION_TEXT_OF(output, "a file") },
	{ "text", 0, "FILE",
	  "write a further report; also in these formats:", OPTION_CALL(parse_output, NULL) },
	{ "markdown", 0, "FILE", "for a comment on a pull request",
	  OPTION_CALL(parse_output, NULL) },
	{ "junit", 0, "FILE", "JUnit's XML, which CI systems show as test results",
	  OPTION_CALL(parse_output, NULL) },
	{ "sarif", 0, "FILE", "SARIF 2.1.0", OPTION_CALL(parse_output, NULL) },
	{ "github", 0, "FILE", "annotations: GitHub's workflow commands",
	  OPTION_CALL(parse_output, NULL) },
	{ "json", 0, "FILE", "everything", OPTION_CALL(parse_output, NULL) },
	{ "badge", 0, "FILE", "a small picture with the verdict, as SVG",
	  OPTION_CALL(parse_output, NULL) },
	{ "flamegraph", 0, "FILE", "picture of the difference, .svg or .html",
	  OPTION_TEXT_OF(outputs.flamegraph, "a file") },
	{ "view", 0, "FILE",
	  "page of `kvmprof view' that compares a run of each side, those with\n"
	  "the median total",
	  OPTION_TEXT_OF(outputs.page, "a file") },
	{ "link", 0, "URL", "the link to the picture in reports (default: FILE)",
	  OPTION_TEXT(outputs.link) },
	OPTION_HEADING("\n"),
	{ "history", 0, "DIR", "show when a metric changed, from the entries recorded there",
	  OPTION_TEXT_OF(history, "a directory") },
	{ "record", 0, NULL, "add the runs of --head to it first", OPTION_PUT(record, true) },
	{ "label", 0, "TEXT", "the name of these runs, such as a commit", OPTION_TEXT(label) },
	{ "at", 0, "TIME", "when (default: now), as 2026-11-21T18:00:00Z",
	  OPTION_CALL_AT(parse_time, at, "a time in UTC, such as 2026-11-21T18:00:00Z") },
	{ "last", 0, "N", "use the newest N entries (default: 200)",
	  OPTION_WHOLE(last, 1, STATS_HISTORY_MAX, "a number of entries") },
	{ "recent", 0, "N", "a change for the worse in the newest N fails (default: 5)",
	  OPTION_WHOLE(recent, 0, STATS_HISTORY_MAX, "a number of entries") },
	{ "html", 0, "FILE", "write the history as a page with a graph of each series",
	  OPTION_TEXT_OF(html, "a file") },
	OPTION_HELP,
	{ 0 },
};

static const struct option_set set = {
	.usage =
		"Usage: kvmprof gate [OPTIONS] --base FILE... --head FILE...\n"
		"       kvmprof gate [OPTIONS] --history DIR [--record --label TEXT --head "
		"FILE...]\n"
		"\n"
		"Did it get slower, where, and by how much? Compares several runs of a base with\n"
		"several of a change (head), by rules, with a stated error rate: identical code\n"
		"fails in at most 1 % of all gates, whatever the number of rules and functions.\n"
		"The unit is the run, so one run a side is always inconclusive; ten a side detect\n"
		"small changes. Interleaved runs (kvmprof bench) are compared in pairs.\n"
		"\n",
	.after = "\n"
		 "Exit status: 0 pass (also with warnings), 1 fail, 2 wrong usage or input that\n"
		 "can't be read, 3 inconclusive: too few or too noisy runs to decide.\n",
	.rows = rows,
	.seen = note_option,
	.word = take_word,
};

static int gate_check_options(struct gate_options *o, struct err *e)
{
	const char *wrong = NULL;

	if (!o->history && (o->record || o->label))
		wrong = "--record and --label need --history DIR";
	else if (o->record && !o->label)
		wrong = "--record needs --label: what are the runs of?";
	else if (o->record && !o->side[GATE_HEAD].n)
		wrong = "--record needs runs: --head FILE...";
	else if (o->history && (o->side[GATE_BASE].n || (!o->record && o->side[GATE_HEAD].n)))
		wrong = "--history compares what was recorded: it takes --head with --record only";
	else if (o->history &&
		 (o->outputs.n || o->outputs.flamegraph || o->outputs.page ||
		  (o->format->write != gate_write_text && o->format->write != gate_write_json)))
		wrong = "--history is told as --format text or json";
	else if (!o->history && o->html)
		wrong = "--html is a page of the history: it needs --history DIR";
	else if (!o->history && !o->side[GATE_BASE].n)
		wrong = "needs runs of the base: --base FILE...";
	else if (!o->history && !o->side[GATE_HEAD].n)
		wrong = "needs runs of the change: --head FILE...";
	else if (o->exact && (o->history || o->side[GATE_BASE].n != 1 || o->side[GATE_HEAD].n != 1))
		wrong = "--exact compares one run of the base with one of the change";
	else if (o->exact && (o->eval.error_rate > 0 || o->eval.pairing || o->eval.seed))
		wrong = "--exact has no error rate, pairs or seed: nothing in it is by chance";
	else if (o->strict && o->history)
		wrong = "--strict is about runs of two sides: --base and --head";
	if (!wrong && !o->naccept && (o->by || o->why))
		wrong = "--by and --why belong to --accept RULE";
	else if (!wrong && o->naccept && o->history && !o->record)
		wrong = "--accept goes into the entry that --record adds";
	if (wrong)
		return err_set(e, EINVAL, "%s", wrong);
	for (unsigned int i = 0; i < o->naccept; i++) {
		o->accept[i].by = o->by;
		o->accept[i].why = o->why;
		if (gate_acceptance_check(&o->accept[i], e))
			return -EINVAL;
	}
	if (o->outputs.flamegraph && !flame_path_is_fit(o->outputs.flamegraph, e))
		return -EINVAL;
	return o->history ? 0
			  : gate_outputs_add(&o->outputs, o->format->write,
					     o->output ? o->output : "-", e);
}

int cmd_gate(int argc, char **argv)
{
	cleanup_free struct gate_options *o = calloc(1, sizeof(*o));
	struct gate_rules *rules = NULL;
	struct err e = { 0 };
	int status;

	if (!o) {
		fputs("kvmprof: out of memory\n", stderr);
		return 2;
	}
	o->format = gate_format_find("text");
	o->last = GATE_SERIES_LAST;
	o->recent = GATE_SERIES_RECENT;
	o->at = time(NULL);
	status = cmd_options(&set, o, argc, argv);
	if (status >= 0)
		return status;
	if (gate_check_options(o, &e))
		return cmd_wrong(argv, e.text);
	if ((o->exact ? gate_rules_load_exact : gate_rules_load)(&rules, o->config, &e) ||
	    (o->history ? gate_history_command(o, rules, &status, &e)
			: gate_compare_runs(o, rules, &status, &e))) {
		fprintf(stderr, "kvmprof: %s\n", e.text);
		/* 1 would mean: it got slower. */
		status = 2;
	}
	gate_rules_destroy(rules);
	return status;
}

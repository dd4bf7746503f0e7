/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/cmd.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "profile/cmd/common.h"
#include "profile/gate/output.h"
#include "profile/gate/series.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct side {
	const char *path[GATE_MAX_RUNS]; /* borrowed */
	unsigned int n;
};

struct options {
	struct side side[GATE_SIDES];
	int last_side; /* whose runs the words are that follow; -1: none */
	const char *config, *output;
	const struct gate_format *format;
	struct gate_outputs outputs;
	struct gate_eval_options eval;
	const char *history, *label;
	bool record;
	time_t at;
	unsigned long last, recent;
};

static void usage(FILE *f)
{
	fputs("Usage: kvmprof gate [OPTIONS] --base FILE... --head FILE...\n"
	      "       kvmprof gate [OPTIONS] --history DIR [--record --label TEXT --head FILE...]\n"
	      "\n"
	      "Did it get slower, where, and by how much? Compares several runs of a base with\n"
	      "several of a change (head), by rules, with a stated error rate: identical code\n"
	      "fails in at most 1 % of all gates, whatever the number of rules and functions.\n"
	      "The run is what is counted, so one run a side is always inconclusive; ten a side\n"
	      "see small changes. Runs that took turns (kvmprof bench) are compared in pairs.\n"
	      "\n"
	      "      --base FILE...     profiles of the base: files or directories, several\n"
	      "      --head FILE...     likewise of the change\n"
	      "  -c, --config FILE      rules in TOML (default: run time, functions, new\n"
	      "                         functions, exits)\n"
	      "      --error-rate X     instead of the rules' (0.01)\n"
	      "      --seed N           for what is drawn by chance (default: 1)\n"
	      "      --unpaired         compare as if the order of the runs were not known\n"
	      "\n"
	      "  -f, --format FORMAT    text (default), markdown, junit, sarif, github or json\n"
	      "  -o, --output FILE      write there (default: -, standard output)\n"
	      "      --text FILE        another report, beside that; any of them\n"
	      "      --markdown FILE    for a comment on a pull request\n"
	      "      --junit FILE       JUnit's XML, which CI systems show as test results\n"
	      "      --sarif FILE       SARIF 2.1.0\n"
	      "      --github FILE      annotations: GitHub's workflow commands\n"
	      "      --json FILE        everything\n"
	      "      --flamegraph FILE  picture of the difference, .svg or .html\n"
	      "      --link URL         what reports link to as the picture (default: FILE)\n"
	      "\n"
	      "      --history DIR      when did a metric change, in what was recorded there?\n"
	      "      --record           add the runs of --head to it first\n"
	      "      --label TEXT       what they are of: a commit, say\n"
	      "      --at TIME          when (default: now), as 2026-11-21T18:00:00Z\n"
	      "      --last N           look at the newest N entries (default: 200)\n"
	      "      --recent N         a change for the worse in the newest N fails (default: 5)\n"
	      "  -h, --help             this text\n"
	      "\n"
	      "Exit status: 0 pass (also with warnings), 1 fail, 2 wrong usage or input that\n"
	      "can't be read, 3 inconclusive: too few or too noisy runs to tell.\n",
	      f);
}

/* -- history -------------------------------------------------------------------------------- */

static int record(const struct options *o, const struct grules *rules, struct err *e)
{
	const struct side *s = &o->side[GATE_HEAD];
	cleanup_free struct gate_run **run = calloc(s->n, sizeof(struct gate_run *));
	char file[GATE_HISTORY_FILE];
	int ret = run ? 0 : err_set(e, ENOMEM, "out of memory");

	for (unsigned int i = 0; i < s->n && !ret; i++)
		ret = gate_run_load(&run[i], s->path[i], rules, e);
	ret = ret ? ret
		  : gate_history_record(o->history, o->label, o->at, rules, run, s->n, file, e);
	if (!ret)
		fprintf(stderr, "kvmprof: recorded %u runs of %s in %s/%s\n", s->n, o->label,
			o->history, file);
	for (unsigned int i = 0; run && i < s->n; i++)
		gate_run_destroy(run[i]);
	return ret;
}

static int put(const char *path, const struct buf *b, struct err *e)
{
	bool to_file = path && strcmp(path, "-") != 0;
	FILE *f = to_file ? fopen(path, "w") : stdout;
	bool bad;

	if (!f)
		return err_set(e, errno, "cannot write %s: %s", path, strerror(errno));
	bad = fwrite(b->data, 1, b->len, f) != b->len || fflush(f) != 0;
	if (to_file && fclose(f) != 0)
		bad = true;
	return bad ? err_set(e, EIO, "cannot write to %s", to_file ? path : "standard output") : 0;
}

static int show_history(const struct options *o, const struct grules *rules, int *status,
			struct err *e)
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
	ret = ret ? ret : put(o->output, &b, e);
	buf_deinit(&b);
	gate_series_destroy(s);
	gate_history_destroy(h);
	return ret;
}

static int history(const struct options *o, const struct grules *rules, int *status, struct err *e)
{
	int ret = o->record ? record(o, rules, e) : 0;

	return ret ? ret : show_history(o, rules, status, e);
}

/* -- comparing ------------------------------------------------------------------------------- */

static int load(struct gate *g, const struct options *o, struct err *e)
{
	for (unsigned int s = 0; s < GATE_SIDES; s++)
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

static int compare(const struct options *o, const struct grules *rules, int *status, struct err *e)
{
	struct gate_report *r = NULL;
	struct gate *g = NULL;
	int ret = gate_create(&g, rules, e);

	ret = ret ? ret : load(g, o, e);
	ret = ret ? ret : gate_evaluate(g, &o->eval, &r, e);
	ret = ret ? ret : gate_outputs_write(&o->outputs, r, e);
	if (!ret)
		*status = gate_exit_status(r);
	gate_report_destroy(r);
	gate_destroy(g);
	return ret;
}

/* -- options --------------------------------------------------------------------------------- */

static bool add_path(struct side *s, const char *path)
{
	if (s->n == GATE_MAX_RUNS) {
		fprintf(stderr, "kvmprof gate: more than %u runs a side\n", GATE_MAX_RUNS);
		return false;
	}
	s->path[s->n++] = path;
	return true;
}

/* "a,b,c", cut in place; a path that exists as it is may have commas. */
static bool add_paths(struct side *s, char *list)
{
	char *save = NULL;

	if (!*list || access(list, F_OK) == 0)
		return add_path(s, list);
	for (char *p = strtok_r(list, ",", &save); p; p = strtok_r(NULL, ",", &save))
		if (!add_path(s, p))
			return false;
	return true;
}

static bool parse_number(const char *what, const char *text, unsigned long least,
			 unsigned long most, unsigned long *out)
{
	char *end;

	errno = 0;
	*out = strtoul(text, &end, 10);
	if (*text >= '0' && *text <= '9' && !*end && !errno && *out >= least && *out <= most)
		return true;
	fprintf(stderr, "kvmprof gate: bad %s '%s': a number from %lu to %lu\n", what, text, least,
		most);
	return false;
}

static bool parse_rate(const char *text, double *out)
{
	char *end;

	*out = strtod(text, &end);
	if (end != text && !*end && isfinite(*out) && *out > 0 && *out <= 0.5)
		return true;
	fprintf(stderr, "kvmprof gate: bad error rate '%s': above 0, at most 0.5\n", text);
	return false;
}

static bool parse_time(const char *text, time_t *out)
{
	struct tm tm = { 0 };
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm);

	if (end && !*end) {
		*out = timegm(&tm);
		return true;
	}
	fprintf(stderr, "kvmprof gate: bad time '%s': like 2026-11-21T18:00:00Z, in UTC\n", text);
	return false;
}

static bool parse_format(struct options *o, const char *text)
{
	o->format = gate_format_find(text);
	if (!o->format)
		fprintf(stderr,
			"kvmprof gate: no format '%s': text, markdown, junit, sarif, github or "
			"json\n",
			text);
	return o->format != NULL;
}

static bool add_output(struct options *o, const char *format, const char *path)
{
	struct err e = { 0 };

	if (!gate_outputs_add(&o->outputs, gate_format_find(format)->write, path, &e))
		return true;
	fprintf(stderr, "kvmprof gate: %s\n", e.text);
	return false;
}

enum {
	OPT_BASE = 256,
	OPT_HEAD,
	OPT_ERROR_RATE,
	OPT_SEED,
	OPT_UNPAIRED,
	OPT_TEXT,
	OPT_MARKDOWN,
	OPT_JUNIT,
	OPT_SARIF,
	OPT_GITHUB,
	OPT_JSON,
	OPT_FLAMEGRAPH,
	OPT_LINK,
	OPT_HISTORY,
	OPT_RECORD,
	OPT_LABEL,
	OPT_AT,
	OPT_LAST,
	OPT_RECENT,
};

static const struct option long_options[] = {
	{ "base", required_argument, NULL, OPT_BASE },
	{ "head", required_argument, NULL, OPT_HEAD },
	{ "config", required_argument, NULL, 'c' },
	{ "error-rate", required_argument, NULL, OPT_ERROR_RATE },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "unpaired", no_argument, NULL, OPT_UNPAIRED },
	{ "format", required_argument, NULL, 'f' },
	{ "output", required_argument, NULL, 'o' },
	{ "text", required_argument, NULL, OPT_TEXT },
	{ "markdown", required_argument, NULL, OPT_MARKDOWN },
	{ "junit", required_argument, NULL, OPT_JUNIT },
	{ "sarif", required_argument, NULL, OPT_SARIF },
	{ "github", required_argument, NULL, OPT_GITHUB },
	{ "json", required_argument, NULL, OPT_JSON },
	{ "flamegraph", required_argument, NULL, OPT_FLAMEGRAPH },
	{ "link", required_argument, NULL, OPT_LINK },
	{ "history", required_argument, NULL, OPT_HISTORY },
	{ "record", no_argument, NULL, OPT_RECORD },
	{ "label", required_argument, NULL, OPT_LABEL },
	{ "at", required_argument, NULL, OPT_AT },
	{ "last", required_argument, NULL, OPT_LAST },
	{ "recent", required_argument, NULL, OPT_RECENT },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static bool take_side(struct options *o, enum gate_side side, char *arg)
{
	o->last_side = side;
	return add_paths(&o->side[side], arg);
}

static bool take_history_option(struct options *o, int c, char *arg)
{
	switch (c) {
	case OPT_HISTORY:
		o->history = arg;
		return true;
	case OPT_RECORD:
		return o->record = true;
	case OPT_LABEL:
		o->label = arg;
		return true;
	case OPT_AT:
		return parse_time(arg, &o->at);
	case OPT_LAST:
		return parse_number("number of entries", arg, 1, GATE_HISTORY_MAX, &o->last);
	default: /* OPT_RECENT */
		return parse_number("number of entries", arg, 0, GATE_HISTORY_MAX, &o->recent);
	}
}

static bool take_output(struct options *o, int c, char *arg)
{
	switch (c) {
	case 'f':
		return parse_format(o, arg);
	case 'o':
		o->output = arg;
		return true;
	case OPT_FLAMEGRAPH:
		o->outputs.flamegraph = arg;
		return true;
	case OPT_LINK:
		o->outputs.link = arg;
		return true;
	default: /* their names are those of the formats */
		for (const struct option *x = long_options; x->name; x++)
			if (x->val == c)
				return add_output(o, x->name, arg);
		return false;
	}
}

static bool take_option(struct options *o, int c, char *arg)
{
	unsigned long n;

	if (c != OPT_BASE && c != OPT_HEAD && c != 1)
		o->last_side = -1;
	switch (c) {
	case 1:
		if (o->last_side >= 0)
			return add_paths(&o->side[o->last_side], arg);
		fprintf(stderr,
			"kvmprof gate: unexpected argument '%s': runs follow --base or --head\n",
			arg);
		return false;
	case OPT_BASE:
		return take_side(o, GATE_BASE, arg);
	case OPT_HEAD:
		return take_side(o, GATE_HEAD, arg);
	case 'c':
		o->config = arg;
		return true;
	case OPT_ERROR_RATE:
		return parse_rate(arg, &o->eval.error_rate);
	case OPT_SEED:
		if (!parse_number("seed", arg, 1, 1ul << 62, &n))
			return false;
		o->eval.seed = n;
		return true;
	case OPT_UNPAIRED:
		o->eval.pairing = GATE_FREE;
		return true;
	default:
		return c >= OPT_HISTORY ? take_history_option(o, c, arg) : take_output(o, c, arg);
	}
}

static bool wrong(const char *text)
{
	fprintf(stderr, "kvmprof gate: %s (try kvmprof gate --help)\n", text);
	return false;
}

static bool check_options(struct options *o)
{
	const char *output = o->output ? o->output : "-";

	if (!o->history && (o->record || o->label))
		return wrong("--record and --label need --history DIR");
	if (o->record && !o->label)
		return wrong("--record needs --label: what are the runs of?");
	if (o->record && !o->side[GATE_HEAD].n)
		return wrong("--record needs runs: --head FILE...");
	if (o->history && (o->side[GATE_BASE].n || (!o->record && o->side[GATE_HEAD].n)))
		return wrong("--history compares what was recorded: it takes --head with --record "
			     "only");
	if (o->history &&
	    (o->outputs.n || o->outputs.flamegraph ||
	     (o->format->write != gate_write_text && o->format->write != gate_write_json)))
		return wrong("--history is told as --format text or json");
	if (!o->history && !o->side[GATE_BASE].n)
		return wrong("needs runs of the base: --base FILE...");
	if (!o->history && !o->side[GATE_HEAD].n)
		return wrong("needs runs of the change: --head FILE...");
	return o->history || add_output(o, o->format->name, output);
}

/* -1 or an exit status. */
static int parse(struct options *o, int argc, char **argv)
{
	int c;

	optind = 1;
	opterr = 0;
	/* "-": words come in order, as those of the side before them. */
	while ((c = getopt_long(argc, argv, "-:c:f:o:h", long_options, NULL)) != -1) {
		if (c == 'h') {
			usage(stdout);
			return 0;
		}
		if (c == ':' || c == '?')
			return cmd_wrong_option(argv, c);
		if (!take_option(o, c, optarg))
			return 2;
	}
	for (; optind < argc; optind++)
		if (!take_option(o, 1, argv[optind]))
			return 2;
	return check_options(o) ? -1 : 2;
}

int cmd_gate(int argc, char **argv)
{
	cleanup_free struct options *o = calloc(1, sizeof(*o));
	struct grules *rules = NULL;
	struct err e = { 0 };
	int status;

	if (!o) {
		fputs("kvmprof: out of memory\n", stderr);
		return 2;
	}
	o->last_side = -1;
	o->format = gate_format_find("text");
	o->last = GATE_SERIES_LAST;
	o->recent = GATE_SERIES_RECENT;
	o->at = time(NULL);
	status = parse(o, argc, argv);
	if (status >= 0)
		return status;
	if (grules_load(&rules, o->config, &e) ||
	    (o->history ? history(o, rules, &status, &e) : compare(o, rules, &status, &e))) {
		fprintf(stderr, "kvmprof: %s\n", e.text);
		/* 1 would mean: it got slower. */
		status = 2;
	}
	grules_destroy(rules);
	return status;
}

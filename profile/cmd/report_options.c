/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/report_options.h"

#include "base/buf.h"
#include "base/number.h"
#include "profile/cmd/common.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_ROWS 40u
#define DEFAULT_KEYS "mode,sym,dso"
/* agg_key_list() has them */
#define KEYS "comm, pid, tid, cpu, mode, sym, dso, code_page_size, data_page_size, srcline"
#define DEFAULT_GRAPH_LIMIT 0.5 /* percent; perf's */

/* Comma-separated; the list is cut in place. */
static int set_keys(struct agg_config *c, char *list, struct err *e)
{
	char keys[256], *save = NULL;

	agg_key_list(keys, sizeof(keys));
	c->nkeys = 0;
	for (char *s = strtok_r(list, ",", &save); s; s = strtok_r(NULL, ",", &save)) {
		const struct agg_key *key = agg_key_find(s);

		if (!key && (!strcmp(s, "self") || !strcmp(s, "children")))
			return err_set(e, EINVAL, "'%s' is an order, not a key: give --order %s", s,
				       s);
		if (!key)
			return err_set(e, EINVAL, "cannot sort by '%.60s': expected one of %s", s,
				       keys);
		if (c->nkeys == AGG_MAX_KEYS)
			return err_set(e, E2BIG, "more than %u keys to sort by", AGG_MAX_KEYS);
		c->key[c->nkeys++] = key;
	}
	return c->nkeys ? 0 : err_set(e, EINVAL, "needs keys: %s", keys);
}

static int parse_keys(void *at, char *arg, struct err *e)
{
	struct report_options *opt = at;

	opt->sorted = true;
	return set_keys(&opt->config, arg, e);
}

static bool set_percent(const char *text, double *out)
{
	char *end;

	errno = 0;
	*out = strtod(text, &end);
	end += *end == '%';
	return !errno && end != text && !*end && *out >= 0 && *out <= 100;
}

static int parse_limit(void *at, char *arg, struct err *e)
{
	struct report_options *opt = at;

	(void)e;
	if (!set_percent(arg, &opt->row_limit))
		return -EINVAL;
	opt->graph_limit = opt->row_limit;
	return 0;
}

/* perf's words; those of layouts that we do not have are refused. Without words: caller. */
static int parse_graph(void *at, char *arg, struct err *e)
{
	struct report_options *opt = at;
	char *save = NULL;

	opt->graph = REPORT_CALLER;
	for (char *s = arg ? strtok_r(arg, ",", &save) : NULL; s; s = strtok_r(NULL, ",", &save)) {
		if (!strcmp(s, "caller"))
			opt->graph = REPORT_CALLER;
		else if (!strcmp(s, "callee"))
			opt->graph = REPORT_CALLEE;
		else if (!strcmp(s, "none"))
			opt->graph = REPORT_NO_GRAPH;
		else if (!strcmp(s, "graph") || !strcmp(s, "function") || !strcmp(s, "percent"))
			; /* what it is anyway */
		else if ((*s < '0' || *s > '9') || !set_percent(s, &opt->graph_limit))
			return err_set(e, EINVAL,
				       "bad call graph '%.60s': caller, callee or none, and a "
				       "limit in percent",
				       s);
	}
	return 0;
}

/* perf's columns. */
static int refuse_fields(void *at, char *arg, struct err *e)
{
	(void)at;
	(void)arg;
	return err_set(e, EINVAL, "columns are chosen by --sort: " KEYS);
}

static int parse_input(void *at, char *arg, struct err *e)
{
	struct report_options *opt = at;

	if (opt->named)
		return err_set(e, EINVAL, "give one profile only, not also '%.200s'", arg);
	if (!*arg)
		return err_set(e, EINVAL, "'': expected a profile");
	opt->named = true;
	opt->input = arg;
	return 0;
}

static int parse_images(void *at, char *arg, struct err *e)
{
	struct report_options *opt = at;

	(void)e;
	opt->images = true;
	opt->functions = arg;
	return !arg || !strcmp(arg, "functions") ? 0
						 : selection_parse_texts(&opt->selection.dso, arg);
}

static int parse_no_children(void *at, char *arg, struct err *e)
{
	struct report_options *opt = at;

	(void)arg;
	(void)e;
	opt->no_children = opt->by_self = true;
	return 0;
}

static const char *const orders[] = { "children", "self", NULL };
static const char *const colors[] = { "auto", "always", "never", NULL };

#define OPTION_STRUCT struct report_options

static const struct option_row rows[] = {
	{ "input", 'i', "FILE",
	  "the profile, kvmprof's or perf's (default: perf.data;\n"
	  "-: standard input)",
	  OPTION_CALL(parse_input, NULL) },
	CMD_EVENT(event),
	CMD_EPOCH(epoch),
	{ "sort", 's', "KEY,...",
	  "a row for each combination of these (default:\n" DEFAULT_KEYS "): " KEYS,
	  OPTION_CALL(parse_keys, NULL) },
	{ "order", 0, "ORDER", "rows by children (default) or by self",
	  OPTION_WORD(by_self, orders) },
	{ "no-children", 0, NULL, "show only the functions' own time, and sort by it",
	  OPTION_CALL(parse_no_children, NULL) },
	{ "top", 'n', "N", "rows to show, 0 for all (default: 40)",
	  OPTION_WHOLE(top, 0, ULONG_MAX, "a number of rows") },
	{ "percent-limit", 0, "P", "omit rows and branches below P %",
	  OPTION_CALL(parse_limit, "a percentage") },
	{ "ci", 0, NULL,
	  "95 % intervals of the shares: the noise of sampling\n"
	  "within this run, and nothing else",
	  OPTION_PUT(ci, true) },
	{ "images", 0, "[=WHAT]",
	  "samples by image; with WHAT (functions, or an image's\n"
	  "name) also by function",
	  OPTION_CALL(parse_images, "functions, or an image's name") },
	OPTION_HEADING("\nCallers and callees:\n"),
	{ "call-graph", 'g', "HOW",
	  "below each row a tree: caller (what it called), callee\n"
	  "(who called it) or none (default); as in perf, a limit\n"
	  "in percent may follow: caller,1 (default: 0.5)",
	  OPTION_CALL(parse_graph, NULL), .next = true },
	{ "max-stack", 0, "N", "only the N innermost frames of each stack count",
	  OPTION_WHOLE(config.max_stack, 1, PERFDATA_MAX_FRAMES, "1 to 8190 frames") },
	OPTION_HEADING("\nWhat to count:\n"),
	SELECTION_ROWS(selection),
	OPTION_HEADING("\n"),
	{ "header", 0, NULL, "print the run's counters and its cost above the table",
	  OPTION_PUT(header, true) },
	{ "json", 0, NULL, "one JSON object", OPTION_PUT(format, REPORT_JSON) },
	{ "csv", 0, NULL, "comma-separated values (RFC 4180)", OPTION_PUT(format, REPORT_CSV) },
	{ "color", 0, "WHEN", "auto (on a terminal, default), always or never",
	  OPTION_WORD(when_color, colors) },
	{ "stdio", 0, NULL, NULL, OPTION_PUT(stdio, true) },
	{ "fields", 'F', "LIST", NULL, OPTION_CALL(refuse_fields, NULL) },
	CMD_NO_DEMANGLE(no_demangle),
	CMD_BUILDID_DIR(buildid_dir),
	OPTION_HEADING("For --sort srcline, the kernel's lines:\n"),
	OPTION_ROWS(cmd_debuginfo_rows, places),
	OPTION_HELP,
	{ 0 },
};

static const struct option_set set = {
	.usage = "Usage: kvmprof report [OPTIONS] [PROFILE]\n"
		 "\n"
		 "Show where the time went, by symbol or by other keys.\n"
		 "\n",
	.after = "\n"
		 "Children: the function was in the stack. Self: it was innermost.\n"
		 "Samples: how many times it was innermost. Mode: kernel, user, or idle\n"
		 "(the vCPU was halted). On a terminal the text goes through $PAGER (less).\n",
	.rows = rows,
	.word = parse_input,
};

/* Refuses options that exclude each other, e.g. images as rows together with functions. */
static int report_options_check(struct report_options *opt, struct err *e)
{
	static char by_image[] = "dso", by_function[] = "dso,sym";

	if (!opt->selection.phases && selection_check(&opt->selection, e))
		return -EINVAL;
	if (opt->selection.phases && opt->format == REPORT_CSV)
		return err_set(e, EINVAL, "the table of phases is printed as text or --json only");
	if (opt->header && opt->format != REPORT_TEXT)
		return err_set(e, EINVAL, "--header is printed above the text table: drop %s",
			       opt->format == REPORT_JSON ? "--json" : "--csv");
	if (!opt->images)
		return 0;
	if (opt->sorted || opt->graph)
		return err_set(e, EINVAL, "--images prints a table of its own: drop %s",
			       opt->sorted ? "--sort" : "-g");
	opt->no_children = opt->by_self = true;
	return set_keys(&opt->config, opt->functions ? by_function : by_image, e);
}

int report_options_parse(struct report_options *opt, int argc, char **argv)
{
	char default_keys[] = DEFAULT_KEYS;
	struct err e = { 0 };
	int status;

	*opt = (struct report_options){
		.input = "perf.data",
		.top = DEFAULT_ROWS,
		.graph_limit = DEFAULT_GRAPH_LIMIT,
	};
	opt->config.selection = &opt->selection;
	set_keys(&opt->config, default_keys, NULL);
	status = cmd_options(&set, opt, argc, argv);
	if (status >= 0)
		return status;
	opt->places.cache_dir = opt->buildid_dir;
	return report_options_check(opt, &e) ? cmd_wrong(argv, e.text) : -1;
}

void report_options_deinit(struct report_options *opt)
{
	selection_deinit(&opt->selection);
}

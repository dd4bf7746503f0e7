/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/cmd.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "base/number.h"
#include "base/outfile.h"
#include "base/utf8.h"
#include "profile/cmd/common.h"
#include "profile/analyse/stacks/selection.h"
#include "profile/analyse/stacks/comparable.h"
#include "profile/compare/diff/diff.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_ROWS 40u
#define DEFAULT_GRAPH_LIMIT 0.5 /* %, as in perf */
#define DEFAULT_MIN_SHARE 0.05	/* % */
#define MAX_WIDTH 48

enum form { FORM_TEXT, FORM_JSON, FORM_CSV };

struct cmd_diff_options {
	struct cmd_runs base, head;
	const char *output;
	unsigned long top;
	enum form form;
	struct diff_options diff;
	bool graph; /* -g: below each row a tree */
	enum diff_direction way;
	double graph_limit; /* percent */
	struct stackset_options load;
	struct selection selection;
};

/* -- text -------------------------------------------------------------------------------- */

static void print_side(FILE *f, const char *what, const struct cmd_runs *s,
		       const struct diff_run *run)
{
	for (unsigned int i = 0; i < s->n; i++)
		fprintf(f, "# %s %s: %" PRIu64 " %s%s%s\n", what, s->path[i],
			run[i].counted ? run[i].weight : run[i].samples,
			run[i].counted ? "counted" : "samples", *run[i].guest ? ", " : "",
			run[i].guest);
}

static void print_header(FILE *f, const struct diff *d, const struct cmd_diff_options *o)
{
	const struct stats_deals *s = &d->design.deals;

	print_side(f, "base", &o->base, d->run);
	print_side(f, "head", &o->head, d->run + s->na);
	if (s->deal && s->exact)
		fprintf(f,
			"# %u runs against %u: exact permutation test over %zu arrangements (least "
			"possible p %.4g)",
			s->na, s->nb, s->ndeals, s->p_least);
	else if (s->deal)
		fprintf(f, "# %u runs against %u: permutation test over %u random arrangements",
			s->na, s->nb, STATS_RESAMPLES);
	if (s->deal)
		fprintf(f, ", interval of 95 %% from %u resamples, seed %" PRIu64 "\n",
			STATS_RESAMPLES, s->seed);
	else if (diff_is_counted(d))
		fputs("# exact counts, without noise; for differences in instructions:\n"
		      "# kvmprof gate --exact --base BASE --head HEAD\n",
		      f);
	else if (s->na == 1 && s->nb == 1)
		fputs("# one run a side: only the noise inside of a run is known (Noise: 95 %, at "
		      "least), not how\n# much runs differ; give two or more a side for p-values\n",
		      f);
	else
		fputs("# one run on one side: how much runs differ there is not known, so there "
		      "are no p-values\n",
		      f);
	fprintf(f, "# compared: %s, in percentage points%s\n#\n",
		o->diff.by_children ? "children" : "self",
		o->diff.no_idle ? " of the time that was not idle" : "");
}

static const char *short_dso(const char *dso)
{
	const char *slash = dso[0] == '/' ? strrchr(dso, '/') : NULL;

	return slash && slash[1] ? slash + 1 : dso;
}

static int name_width(const struct diff *d, size_t rows)
{
	size_t width = strlen("Symbol");

	for (size_t i = 0; i < rows; i++) {
		size_t len = strlen(d->row[i].name);

		if (len > width)
			width = len;
	}
	return width < MAX_WIDTH ? (int)width : MAX_WIDTH;
}

#define TREE_MARGIN 12 /* columns left of a tree */
#define TREE_STEP 2    /* columns of a level */

/* Prints the nodes from `node` on and those below each. */
static void print_nodes(FILE *f, const struct diff_tree *t, uint32_t node, int level)
{
	for (; node != DIFF_CALLS_NONE; node = t->node[node].next) {
		const struct diff_node *n = &t->node[node];

		fprintf(f, "%*s%+7.2f  %6.2f%% %6.2f%%  %*s%s\n", TREE_MARGIN, "",
			100 * (n->head - n->base), 100 * n->base, 100 * n->head, level * TREE_STEP,
			"", n->name);
		print_nodes(f, t, n->child, level + 1);
	}
}

static int print_tree(FILE *f, const struct diff *d, const struct cmd_diff_options *o,
		      const struct diff_row *row)
{
	struct diff_tree t;

	if (!o->graph)
		return 0;
	if (diff_row_tree(d, row, o->way, o->graph_limit / 100, &t, NULL))
		return -ENOMEM;
	fprintf(f, "%*s%s:\n", TREE_MARGIN, "", o->way == DIFF_CALLERS ? "callers" : "callees");
	print_nodes(f, &t, t.node[0].child, 0);
	putc('\n', f);
	diff_tree_deinit(&t);
	return 0;
}

#define MAX_RELATIONS 10u

/* Returns whether one of the shown rows is a function of the event. */
static bool relation_is_shown(const struct diff *d, const struct lineage_event *e, size_t rows)
{
	const struct lineage *l = &d->lineage;

	for (size_t i = 0; i < rows; i++)
		if (!strcmp(d->row[i].name, lineage_name(l, e, e->function)) ||
		    !strcmp(d->row[i].name, lineage_name(l, e, e->other)))
			return true;
	return false;
}

/*
 * Prints functions that are the same under another name, or in another place: all of them, or with
 * chosen functions those of the rows.
 */
static void print_relations(FILE *f, const struct diff *d, const struct cmd_diff_options *o,
			    size_t rows)
{
	const struct lineage *l = &d->lineage;
	size_t shown = 0, more = 0;
	char text[LINEAGE_TEXT];

	for (size_t i = 0; i < l->nevents; i++) {
		const struct lineage_event *e = &l->event[i];

		if (selection_chooses(&o->selection) && !relation_is_shown(d, e, rows))
			continue;
		if (shown++ >= MAX_RELATIONS) {
			more++;
			continue;
		}

		fprintf(f, "# %s%.2f%% -> %.2f%%\n",
			lineage_text(text, e->kind, lineage_name(l, e, e->function),
				     lineage_name(l, e, e->other)),
			100 * e->base, 100 * e->head);
	}
	if (more)
		fprintf(f, "# and %zu more that were renamed, inlined or split (--json)\n", more);
}

static int print_text(FILE *f, const struct diff *d, const struct cmd_diff_options *o, size_t rows)
{
	bool noise = d->design.deals.na == 1 && d->design.deals.nb == 1 && !diff_is_counted(d);
	int width = name_width(d, rows);

	print_header(f, d, o);
	fprintf(f, "#  Change%s%s", d->design.deals.deal ? "   95 % interval        p      q" : "",
		noise ? "  Noise" : "");
	fprintf(f, " %s: Base %10s", diff_is_counted(d) ? "  Count" : "Samples", "Head");
	if (o->diff.stacks)
		fprintf(f, "    Base    Head  Mode    Stack\n");
	else
		fprintf(f, "  Self: Base    Head  Children: Base    Head  Mode    %-*s  DSO\n",
			width, "Symbol");
	for (size_t i = 0; i < rows; i++) {
		const struct diff_row *r = &d->row[i];

		fprintf(f, "%+9.2f", 100 * r->stat.diff);
		if (r->stat.tested)
			fprintf(f, " %+7.2f ..%+7.2f %8.4f %6.3f", 100 * r->stat.lo,
				100 * r->stat.hi, r->stat.p, r->q);
		if (noise)
			fprintf(f, " %6.2f", 100 * r->noise);
		fprintf(f, " %13.0f %10.0f", r->count_a, r->count_b);
		if (o->diff.stacks)
			fprintf(f, " %6.2f%% %6.2f%%  %-6s  %s\n", 100 * r->self_a, 100 * r->self_b,
				r->mode, r->name);
		else
			fprintf(f, " %10.2f%% %6.2f%% %14.2f%% %6.2f%%  %-6s  %-*s  %s\n",
				100 * r->self_a, 100 * r->self_b, 100 * r->children_a,
				100 * r->children_b, r->mode, width, r->name, short_dso(r->dso));
		if (print_tree(f, d, o, r))
			return -ENOMEM;
	}
	if (rows < d->nrows)
		fprintf(f, "# and %zu more (-n 0 shows all)\n", d->nrows - rows);
	if (d->left_out)
		fprintf(f, "# left out: %zu below %g %%, children included (--min-share)\n",
			d->left_out, 100 * o->diff.min_share);
	print_relations(f, d, o, rows);
	return 0;
}

/* -- JSON and CSV -------------------------------------------------------------------------- */

static void put_json_side(struct json_writer *w, const char *what, const struct cmd_runs *s,
			  const struct diff_run *run)
{
	json_array_begin(w, what);
	for (unsigned int i = 0; i < s->n; i++)
		json_put_object(w, NULL, "input", s->path[i], "samples", run[i].samples, "weight",
				run[i].weight);
	json_array_end(w);
}

static struct json_value percent_of(double share)
{
	return json_short(6, 100 * share);
}

static void put_json_pair(struct json_writer *w, const char *key, double a, double b)
{
	json_array_begin(w, key);
	json_put(w, NULL, percent_of(a), NULL, percent_of(b));
	json_array_end(w);
}

static void put_json_runs(struct json_writer *w, const char *what, const double *v,
			  const struct stats_deals *s)
{
	json_array_begin(w, what);
	for (unsigned int side = 0, i = 0; side < 2; side++) {
		json_array_begin(w, NULL);
		for (; i < s->na + side * s->nb; i++)
			json_put(w, NULL, percent_of(v[i]));
		json_array_end(w);
	}
	json_array_end(w);
}

static void put_json_nodes(struct json_writer *w, const char *key, const struct diff_tree *t,
			   uint32_t node)
{
	json_array_begin(w, key);
	for (; node != DIFF_CALLS_NONE; node = t->node[node].next) {
		const struct diff_node *n = &t->node[node];

		json_object_begin(w, NULL);
		json_put(w, "function", n->name, "change", percent_of(n->head - n->base));
		put_json_pair(w, "share", n->base, n->head);
		put_json_nodes(w, "children", t, n->child);
		json_object_end(w);
	}
	json_array_end(w);
}

static void put_json_tree(struct json_writer *w, const struct diff_row *r, const struct diff *d,
			  const struct cmd_diff_options *o)
{
	struct diff_tree t;

	if (!o->graph)
		return;
	if (diff_row_tree(d, r, o->way, o->graph_limit / 100, &t, NULL)) {
		w->b->failed = true;
		return;
	}
	put_json_nodes(w, o->way == DIFF_CALLERS ? "callers" : "callees", &t, t.node[0].child);
	diff_tree_deinit(&t);
}

static void put_json_row(struct json_writer *w, const struct diff_row *r, const struct diff *d,
			 const struct cmd_diff_options *o)
{
	const bool stacks = o->diff.stacks;

	json_line(w);
	json_object_begin(w, NULL);
	json_put(w, "mode", r->mode, stacks ? "stack" : "symbol", r->name);
	if (!stacks)
		json_str(w, "dso", r->dso);
	json_put(w, "change", percent_of(r->stat.diff));
	put_json_pair(w, "self", r->self_a, r->self_b);
	if (!stacks)
		put_json_pair(w, "children", r->children_a, r->children_b);
	if (r->stat.tested) {
		put_json_pair(w, "interval", r->stat.lo, r->stat.hi);
		json_put(w, "p", json_short(6, r->stat.p), "q", json_short(6, r->q));
	}
	if (d->design.deals.na == 1 && d->design.deals.nb == 1)
		json_put(w, "noise", percent_of(r->noise));
	json_array_begin(w, "count");
	json_put(w, NULL, (uint64_t)r->count_a, NULL, (uint64_t)r->count_b);
	json_array_end(w);
	put_json_runs(w, "self_runs", r->self, &d->design.deals);
	if (!stacks)
		put_json_runs(w, "children_runs", r->children, &d->design.deals);
	put_json_tree(w, r, d, o);
	json_object_end(w);
}

static void put_json_relation(struct json_writer *w, const struct lineage *l,
			      const struct lineage_event *e)
{
	json_line(w);
	json_object_begin(w, NULL);
	json_put(w, "kind", lineage_kind_name(e->kind), "function", lineage_name(l, e, e->function),
		 "other", lineage_name(l, e, e->other));
	put_json_pair(w, "self", e->base, e->head);
	json_object_end(w);
}

static int print_json(FILE *f, const struct diff *d, const struct cmd_diff_options *o, size_t rows)
{
	const struct stats_deals *s = &d->design.deals;
	struct json_writer w;

	json_open(&w);
	put_json_side(&w, "base", &o->base, d->run);
	put_json_side(&w, "head", &o->head, d->run + s->na);
	json_put(&w, "compared", o->diff.by_children ? "children" : "self", "no_idle",
		 o->diff.no_idle, "tested", json_of_bool(s->deal));
	if (s->deal)
		json_put(&w, "exact", s->exact, "deals", s->ndeals, "least_p",
			 json_short(6, s->p_least), "seed", s->seed);
	json_put(&w, "rows_total", d->nrows, "left_out", d->left_out);
	json_array_begin(&w, "rows");
	for (size_t i = 0; i < rows; i++)
		put_json_row(&w, &d->row[i], d, o);
	json_array_end(&w);
	json_array_begin(&w, "relations");
	for (size_t i = 0; i < d->lineage.nevents; i++)
		put_json_relation(&w, &d->lineage, &d->lineage.event[i]);
	json_array_end(&w);
	return json_close(&w, f);
}

static void print_csv(FILE *f, const struct diff *d, const struct cmd_diff_options *o, size_t rows)
{
	fprintf(f,
		"change,self_base,self_head,children_base,children_head,noise,low,high,p,q,mode,"
		"%s,dso,count_base,count_head\r\n",
		o->diff.stacks ? "stack" : "symbol");
	for (size_t i = 0; i < rows; i++) {
		const struct diff_row *r = &d->row[i];

		fprintf(f, "%.6g,%.6g,%.6g,%.6g,%.6g,", 100 * r->stat.diff, 100 * r->self_a,
			100 * r->self_b, 100 * r->children_a, 100 * r->children_b);
		if (d->design.deals.na == 1 && d->design.deals.nb == 1)
			fprintf(f, "%.6g", 100 * r->noise);
		if (r->stat.tested)
			fprintf(f, ",%.6g,%.6g,%.6g,%.6g,", 100 * r->stat.lo, 100 * r->stat.hi,
				r->stat.p, r->q);
		else
			fputs(",,,,,", f);
		fprintf(f, "%s,", r->mode);
		utf8_put_csv(f, r->name);
		putc(',', f);
		utf8_put_csv(f, r->dso);
		fprintf(f, ",%.0f,%.0f\r\n", r->count_a, r->count_b);
	}
}

/* -- command ---------------------------------------------------------------------------------- */

/* Reports differences between the sides that give shares another meaning. */
struct first_run {
	bool there, weight_is_ns;
	char event[64];
	char *totals; /* owned; NULL: none */
	/* runs that have none of the chosen functions, and why the first of them does not */
	unsigned int nmissed;
	struct err missed;
};

/* The means by which counts were made are a part of them. */
static void tell_means(const char *path, const struct first_run *first, const char *totals)
{
	struct buf words;

	buf_init(&words);
	if (comparable_differs(first->totals, totals, &words)) {
		buf_u8(&words, 0);
		if (!words.failed)
			fprintf(stderr,
				"kvmprof: warning: %s was not made like the first run, so "
				"differences may come from that: %s\n",
				path, (const char *)words.data);
	}
	buf_deinit(&words);
}

static int diff_add_run(struct diff *d, const char *path, const struct cmd_diff_options *o,
			struct first_run *first, struct err *e)
{
	struct stackset_options load = o->load;
	struct stackset *s = NULL;
	struct err why = { 0 };
	int ret;

	load.input = path;
	ret = stackset_load(&s, &load, e);
	if (ret)
		return ret;
	cmd_report_missing(path, s);
	if (first->there &&
	    (strcmp(first->event, s->event) || first->weight_is_ns != s->weight_is_ns))
		fprintf(stderr, "kvmprof: %s has the event %s, but the first run has %s\n", path,
			s->event, first->event);
	if (first->there)
		tell_means(path, first, s->json);
	else
		first->totals = s->json ? strdup(s->json) : NULL;
	if (!first->there)
		snprintf(first->event, sizeof(first->event), "%s", s->event);
	first->weight_is_ns = s->weight_is_ns;
	first->there = true;
	ret = !s->samples && *s->missed ? err_set(&why, ENODATA, "%s", s->missed)
					: diff_add(d, s, &why);
	if (ret)
		err_set(e, -ret, "%s: %s", path, why.text);
	else if (*s->missed && !first->nmissed++)
		err_set(&first->missed, ENODATA, "%s: %s", path, s->missed);
	stackset_destroy(s);
	return ret;
}

static int diff_print_to(FILE *f, const struct diff *d, const struct cmd_diff_options *o)
{
	size_t rows = o->top && o->top < d->nrows ? o->top : d->nrows;

	if (o->form == FORM_JSON)
		return print_json(f, d, o, rows);
	if (o->form == FORM_CSV)
		print_csv(f, d, o, rows);
	else
		return print_text(f, d, o, rows);
	return 0;
}

static int diff_print(const struct diff *d, const struct cmd_diff_options *o, struct err *e)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	bool failed;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return err_nomem(e);
	failed = diff_print_to(f, d, o) != 0;
	if (fclose(f) != 0 || failed)
		return err_nomem(e);
	return outfile_write(o->output ? o->output : "-", text, len, e);
}

/* Warns of runs that are there twice: intervals and q take them for further evidence. */
static void tell_copies(const struct diff *d, const struct cmd_diff_options *o)
{
	for (unsigned int i = 0; i < o->base.n + o->head.n; i++) {
		const struct cmd_runs *side = i < o->base.n ? &o->base : &o->head;
		const unsigned int copy_of = d->run[i].copy_of;

		if (copy_of)
			fprintf(stderr,
				"kvmprof: warning: %s is the same run as %s (all samples are "
				"equal): each run counts once, so make another one\n",
				side->path[i < o->base.n ? i : i - o->base.n],
				side->path[copy_of - 1]);
	}
}

static int diff_compare(const struct cmd_diff_options *o, struct err *e)
{
	struct first_run first = { 0 };
	struct diff *d = NULL;
	int ret = diff_create(&d, o->base.n, o->head.n, &o->diff, e);

	for (unsigned int i = 0; i < o->base.n && !ret; i++)
		ret = diff_add_run(d, o->base.path[i], o, &first, e);
	for (unsigned int i = 0; i < o->head.n && !ret; i++)
		ret = diff_add_run(d, o->head.path[i], o, &first, e);
	if (!ret && first.nmissed == o->base.n + o->head.n)
		ret = err_set(e, ENODATA, "%s", first.missed.text);
	if (!ret && o->graph && !diff_has_chains(d))
		ret = err_set(e, ENODATA,
			      "-g needs call chains, and the samples of these profiles have none");
	ret = ret ? ret : diff_finish(d, e);
	if (!ret)
		tell_copies(d, o);
	ret = ret ? ret : diff_print(d, o, e);
	diff_destroy(d);
	free(first.totals);
	return ret;
}

static int parse_path(void *at, char *arg, struct err *e)
{
	return cmd_runs_add(at, arg, e);
}

/* "callee" or "caller,1" */
static int parse_graph(void *at, char *arg, struct err *e)
{
	struct cmd_diff_options *o = at;
	char *comma = strchr(arg, ',');

	(void)e;
	if (comma)
		*comma++ = '\0';
	o->graph = o->diff.calls = true;
	o->way = !strcmp(arg, "callee") ? DIFF_CALLERS : DIFF_CALLEES;
	if (o->way == DIFF_CALLEES && strcmp(arg, "caller") != 0)
		return -EINVAL;
	return !comma || number_real(comma, 0, 100, &o->graph_limit) ? 0 : -EINVAL;
}

static const char *const orders[] = { "self", "children", NULL };

#define OPTION_STRUCT struct cmd_diff_options

static const struct option_row rows[] = {
	{ "base", 0, "FILE", "a profile of the base; may be given several times",
	  OPTION_CALL_AT(parse_path, base, NULL) },
	{ "head", 0, "FILE", "a profile of the head; may be given several times",
	  OPTION_CALL_AT(parse_path, head, NULL) },
	{ "stacks", 0, NULL, "a row for each stack instead of each function",
	  OPTION_PUT(diff.stacks, true) },
	{ "order", 0, "ORDER",
	  "compare what functions spent themselves (self, default),\n"
	  "or with what they called (children)",
	  OPTION_WORD(diff.by_children, orders) },
	{ "call-graph", 'g', "HOW",
	  "below each row a tree with both shares: callee (who called\n"
	  "it) or caller (what it called), and a limit in percent as\n"
	  "in caller,1 (default: 0.5)",
	  OPTION_CALL(parse_graph, "caller or callee, and a limit in percent") },
	{ "no-idle", 0, NULL, "shares of the time in which a vCPU ran",
	  OPTION_PUT(diff.no_idle, true) },
	{ "top", 'n', "N", "rows to show, 0 for all (default: 40)",
	  OPTION_WHOLE(top, 0, ULONG_MAX, "a number of rows") },
	{ "min-share", 0, "PCT",
	  "omit rows whose mean share of all runs is below PCT\n"
	  "(default: 0.05), children included",
	  OPTION_REAL(diff.min_share, 0, 100, "a percentage") },
	{ "seed", 0, "N", "seed of the random numbers (default: 1)",
	  OPTION_WHOLE(diff.seed, 0, UINT64_MAX, "a whole number") },
	{ "json", 0, NULL, "one JSON object: shares in percent, for each run",
	  OPTION_PUT(form, FORM_JSON) },
	{ "csv", 0, NULL, "comma-separated values: shares in percent", OPTION_PUT(form, FORM_CSV) },
	{ "output", 'o', "FILE", "write there (default: -, standard output)",
	  OPTION_TEXT_OF(output, "a file") },
	CMD_NO_DEMANGLE(load.no_demangle),
	CMD_BUILDID_DIR(load.buildid_dir),
	OPTION_HEADING("\nWhich samples (of each run) and functions:\n"),
	CMD_EVENT(load.event),
	CMD_EPOCH(load.epoch),
	SELECTION_ROWS(selection),
	OPTION_HELP,
	{ 0 },
};

static const struct option_set set = {
	.usage =
		"Usage: kvmprof diff [OPTIONS] BASE[,BASE...] HEAD[,HEAD...]\n"
		"       kvmprof diff [OPTIONS] --base FILE... --head FILE...\n"
		"\n"
		"What changed from BASE to HEAD, in percentage points of all time, largest first.\n"
		"With two or more runs a side it adds p (from a permutation test), q (p, "
		"corrected\n"
		"for the number of rows: of those with q below 0.05 about one in twenty is "
		"expected\n"
		"to be a false positive) and a confidence interval for the change. With one run a\n"
		"side significance cannot be determined.\n"
		"\n",
	.rows = rows,
};

static int diff_take_arguments(struct cmd_diff_options *o, int argc, char **argv, struct err *e)
{
	int ret;

	if (optind < argc && (o->base.n || o->head.n))
		return err_set(e, EINVAL, "unexpected argument '%.200s' beside --base and --head",
			       argv[optind]);
	if (optind + 2 < argc)
		return err_set(e, EINVAL,
			       "unexpected argument '%.200s': several runs of one side are one "
			       "argument, A1,A2",
			       argv[optind + 2]);
	if (optind + 2 == argc) {
		ret = cmd_runs_add_list(&o->base, argv[optind], e);
		if (ret)
			return ret;
		ret = cmd_runs_add_list(&o->head, argv[optind + 1], e);
		if (ret)
			return ret;
	}
	return o->base.n && o->head.n ? 0 : err_set(e, EINVAL, "needs two profiles to compare");
}

int cmd_diff(int argc, char **argv)
{
	cleanup_free struct cmd_diff_options *o = calloc(1, sizeof(*o));
	struct err e = { 0 };
	int status;

	if (!o)
		return cmd_no_memory();
	o->top = DEFAULT_ROWS;
	o->graph_limit = DEFAULT_GRAPH_LIMIT;
	o->diff = (struct diff_options){ .min_share = DEFAULT_MIN_SHARE, .seed = STATS_SEED };
	o->load.selection = &o->selection;
	o->load.keep_unchosen = true;
	status = cmd_options(&set, o, argc, argv);
	if (status >= 0)
		return status;
	o->diff.min_share /= 100;
	if (o->graph && (o->diff.stacks || o->form == FORM_CSV))
		return cmd_wrong(argv, "-g prints trees of functions: drop --stacks and --csv");
	if (selection_check(&o->selection, &e) || diff_take_arguments(o, argc, argv, &e))
		return cmd_wrong(argv, e.text);
	status = cmd_status(diff_compare(o, &e), &e);
	selection_deinit(&o->selection);
	return status;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_annotate: `kvmprof annotate`: a function's instructions as they were in the guest's
 * memory, with the time spent at each.
 */
#include "profile/cmd/cmd.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/nearest.h"
#include "base/outfile.h"
#include "profile/analyse/annotate/lines.h"
#include "profile/analyse/annotate/print.h"
#include "profile/cmd/annotate_diff.h"
#include "profile/cmd/common.h"
#include "profile/cmd/pager.h"
#include "profile/format/perfdata/format.h"
#include "profile/format/sink/counted.h"
#include "profile/analyse/stacks/selection.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_LISTED 20u

struct annotate_options {
	struct selection selection;
	const char *event; /* event to show; NULL: the first */
	uint32_t epoch;
	const char *input, *output, *buildid_dir;
	const char *base;   /* the profile to compare with; NULL: none */
	const char *symbol; /* -s, as perf has it; NULL: it is a word */
	struct annotate_query query;
	enum disasm_syntax syntax;
	bool json, full_path, no_demangle, no_source, children;
	enum annotate_percent { ANNOTATE_DEFAULT, ANNOTATE_LOCAL, ANNOTATE_GLOBAL } percent;
	bool stdio; /* as always */
	struct debuginfo_places places;
};

/* One profile and the function in it. */
struct annotate_command {
	const struct annotate_options *opt;
	const char *input;
	struct reader in;
	struct srcline *kernel;
	struct annotate_find find;
	struct display_names display;
	const struct annotate_function *fn;
	struct annotate_text text;
	struct annotate_lines *lines;
	struct annotate_input shown; /* the input of `annotate`, which borrows it */
	struct annotate *annotate;
};

/* -- which function ------------------------------------------------------------------- */

static const char *function_shown(struct annotate_command *c, const struct annotate_function *fn)
{
	return demangle_shown(&c->display, fn->symbol, fn->kernel);
}

static void function_list(struct annotate_command *c, const struct annotate_function *fn)
{
	char which[ANNOTATE_WHICH_LEN];

	annotate_find_describe(&c->find, fn, which);
	fprintf(stderr, "  0x%016" PRIx64 " %10" PRIu64 "  %s  (%s)%s%s\n", fn->addr, fn->samples,
		function_shown(c, fn), fn->dso, *which ? "  " : "", which);
}

static bool function_looks_like(struct annotate_command *c, const struct annotate_function *fn)
{
	return !c->find.by_address && (strstr(fn->symbol->name, c->find.parts.name) ||
				       strstr(function_shown(c, fn), c->find.parts.name));
}

/* Lists what was meant perhaps: those that match, else those whose names contain the text. */
static void list_candidates(struct annotate_command *c, bool wanted)
{
	unsigned int n = 0;

	for (size_t i = 0; i < c->find.count && n <= MAX_LISTED; i++) {
		const struct annotate_function *fn = &c->find.function[i];

		if (wanted ? !fn->wanted : !function_looks_like(c, fn))
			continue;
		if (n == 0)
			fputs("             address    samples  function\n", stderr);
		if (n++ < MAX_LISTED)
			function_list(c, fn);
		else
			fputs("  ...\n", stderr);
	}
}

/* Returns the sampled function whose name is nearest to what was typed, or NULL. */
static const char *function_nearest(struct annotate_command *c)
{
	struct nearest n = { .typed = c->find.parts.name };

	for (size_t i = 0; i < c->find.count && !c->find.by_address; i++)
		nearest_add(&n, function_shown(c, &c->find.function[i]));
	return nearest_word(&n);
}

static int function_choose(struct annotate_command *c, struct err *e)
{
	const char *text = c->opt->query.text, *meant;

	for (size_t i = 0; i < c->find.count; i++)
		if (c->find.function[i].wanted)
			c->fn = &c->find.function[i];
	if (c->find.nwanted == 1)
		return 0;
	/* The message lists them. */
	if (!c->find.nwanted && c->find.why.code)
		return err_set(e, c->find.why.code, "%s", c->find.why.text);
	list_candidates(c, c->find.nwanted > 1);
	meant = c->find.nwanted ? NULL : function_nearest(c);
	if (c->find.nwanted)
		return err_set(
			e, EEXIST,
			"%s: %zu functions, listed above; choose by address, by NAME#NUMBER or "
			"NAME@FILE, or with --dsos",
			text, c->find.nwanted);
	return err_set(e, ENOENT, "%s: no sample of %s %s such a function%s%s%s", text, c->input,
		       c->opt->children ? "has" : "is in", meant ? " (did you mean " : "",
		       meant ? meant : "", meant ? "?)" : "");
}

/* -- callbacks ------------------------------------------------------------------------ */

static const char *annotate_name_of(void *ctx, uint64_t addr, uint64_t *off)
{
	struct annotate_command *c = ctx;
	struct name name;

	names_lookup_in(c->in.names, c->fn->view, c->fn->kernel, addr + c->fn->bias, &name);
	*off = names_shown_off(&name);
	return name.symbol ? demangle_shown(&c->display, name.symbol, c->fn->kernel) : NULL;
}

static bool annotate_line_of(void *ctx, uint64_t addr, struct annotate_line *out)
{
	struct annotate_command *c = ctx;

	return c->lines && annotate_lines_at(c->lines, addr, out);
}

/* -- output --------------------------------------------------------------------------- */

static const char *annotate_event_of(const struct annotate_command *c)
{
	return c->in.p->event[0] ? c->in.p->event : "event";
}

static struct annotate_style style_of(const struct annotate_command *c)
{
	const struct annotate_options *o = c->opt;

	return (struct annotate_style){
		.color = !o->output && pager_wants_color(),
		.full_path = o->full_path,
		.source = c->lines ? annotate_lines_source : NULL,
		.source_ctx = c->lines,
		.counts = c->in.p->counted ? ANNOTATE_WEIGHTS : ANNOTATE_SAMPLES,
		.children = o->children,
	};
}

/* Returns what the percentages are of, after "percent: ". */
static const char *percent_text(const struct annotate_options *o)
{
	return o->percent == ANNOTATE_GLOBAL ? "global period"
	       : o->children		     ? "local period with callees"
					     : "local period";
}

static void annotate_put_heading(struct annotate_command *c, struct buf *b,
				 const struct annotate_style *style)
{
	const char *unit = c->in.p->counted ? "counted" : "samples";
	size_t at = b->len, n;

	annotate_print_columns(b, style);
	buf_printf(b, "|      Disassembly of %s in %s for %s (%" PRIu64 " %s",
		   function_shown(c, c->fn), c->fn->dso, annotate_event_of(c),
		   c->in.p->counted ? c->annotate->weight : c->fn->samples, unit);
	if (c->opt->children)
		buf_printf(b, ", %" PRIu64 " with callees",
			   c->in.p->counted ? c->fn->children : c->fn->children_samples);
	buf_printf(b, ", percent: %s), code from %s\n", percent_text(c->opt), c->text.source);
	n = b->len - at - 1;
	for (size_t i = 0; i < n; i++)
		buf_u8(b, '-');
	buf_u8(b, '\n');
}

/* Appends notes that help to read the table correctly. */
static void annotate_put_notes(struct annotate_command *c, struct buf *b)
{
	const struct annotate *a = c->annotate;

	if (a->ndiffer)
		buf_printf(
			b,
			"# * %zu instruction%s patched in the running kernel; behind `image:` is "
			"what its image has\n",
			a->ndiffer, a->ndiffer == 1 ? " was" : "s were");
	else if (c->fn->kernel && !c->text.image)
		buf_printf(b, "# %s: patched instructions are not marked\n",
			   strcmp(c->fn->dso, PERFDATA_KERNEL_DSO) != 0
				   ? "a module's own file is not known"
				   : "the kernel's image was not available, or has this code for "
				     "its start only");
	if (a->undrawn)
		buf_printf(b, "# %" PRIu32 " jump targets without an arrow: too many cross\n",
			   a->undrawn);
	if (a->outside)
		buf_printf(b, "# %.2f %% lies behind the last byte that could be read\n",
			   100.0 * (double)a->outside / (double)a->weight);
}

static void annotate_put_json(struct annotate_command *c, struct buf *b)
{
	const struct annotate *a = c->annotate;
	struct json_writer w;

	json_begin(&w, b);
	json_object_begin(&w, NULL);
	json_put(&w, "symbol", function_shown(c, c->fn), "dso", c->fn->dso, "event",
		 annotate_event_of(c), "address", json_address(c->fn->addr), "size", c->fn->size,
		 "samples", a->samples, "weight", a->weight, "code_from", c->text.source,
		 "image_known", json_of_bool(c->text.image), "patched", a->ndiffer, "percent_of",
		 a->whole, "total_weight", c->find.weight);
	if (c->opt->children)
		json_put(&w, "children_weight", c->fn->children, "children_samples",
			 c->fn->children_samples);
	annotate_json(&w, "instructions", a, c->opt->children);
	json_object_end(&w);
	buf_u8(b, '\n');
}

static int annotate_output(struct annotate_command *c, struct err *e)
{
	const struct annotate_options *o = c->opt;
	const struct annotate_style style = style_of(c);
	struct buf b;
	int ret;

	buf_init(&b);
	if (o->json) {
		annotate_put_json(c, &b);
	} else {
		annotate_put_heading(c, &b, &style);
		annotate_print(&b, c->annotate, &style);
		annotate_put_notes(c, &b);
	}
	ret = b.failed ? err_nomem(e)
		       : outfile_write(o->output ? o->output : "-", b.data, b.len, e);
	buf_deinit(&b);
	return ret;
}

/* -- command -------------------------------------------------------------------------- */

static int annotate_open_lines(struct annotate_command *c, struct srcline *kernel, struct err *e)
{
	const struct debuginfo_places *places = &c->opt->places;
	struct err why = { 0 };
	int ret;

	if (c->opt->no_source)
		return 0;
	ret = annotate_lines_open(&c->lines, c->fn, &c->text, kernel, &why, e);
	/* Told only to those who asked for them. */
	if (!ret && why.code && (places->given || places->map_file))
		fprintf(stderr, "kvmprof: no source lines: %s\n", why.text);
	return ret;
}

/* Disassembles the chosen function and counts its samples. */
static int annotate_one(struct annotate_command *c, struct err *e)
{
	struct annotate_input *in = &c->shown;
	int ret = function_choose(c, e);

	if (ret)
		return ret;
	*in = (struct annotate_input){
		.name = annotate_name_of,
		.line = annotate_line_of,
		.ctx = c,
		.syntax = c->opt->syntax,
	};
	ret = annotate_text(&c->text, c->fn, c->opt->buildid_dir, e);
	if (ret)
		return ret;
	ret = annotate_open_lines(c, c->kernel, e);
	if (ret)
		return ret;
	in->addr = c->fn->addr;
	in->live = c->text.live;
	in->image = c->text.image;
	in->len = c->text.len;
	in->hit = c->fn->at;
	in->nhits = c->fn->nhits;
	in->below = c->fn->below;
	in->nbelow = c->fn->nbelow;
	in->whole = c->opt->percent == ANNOTATE_GLOBAL ? c->find.weight
		    : c->opt->children		       ? c->fn->children
						       : 0;
	in->function = function_shown(c, c->fn);
	return annotate_build(&c->annotate, in, e);
}

static int open_event(const struct annotate_command *c, const char *event, struct reader *in,
		      struct err *e)
{
	const struct annotate_options *o = c->opt;
	const struct reader_options from = {
		.input = c->input, .buildid_dir = o->buildid_dir, .event = event, .epoch = o->epoch
	};
	struct selection_window window;
	int ret = reader_open(in, &from, e);

	return ret ? ret
		   : selection_set_window(&o->selection, in->p, c->input, o->buildid_dir, &window,
					  e);
}

/* For exact counts, uses the event with a count for each instruction. */
static int annotate_open(struct annotate_command *c, struct err *e)
{
	int ret = open_event(c, c->opt->event, &c->in, e);

	if (ret || c->opt->event || !c->in.p->counted)
		return ret;
	reader_close(&c->in);
	return open_event(c, COUNTED_EXEC, &c->in, e);
}

/* Finds the call instructions of exact counts, which are in the event that has stacks. */
static int find_counted_calls(struct annotate_command *c, const struct annotate_query *q,
			      struct err *e)
{
	struct reader in = { 0 };
	struct annotate_find calls = { .in = &in, .display = &c->display };
	int ret = open_event(c, COUNTED_INSTRUCTIONS, &in, e);

	ret = ret ? ret : annotate_find(&calls, q, e);
	if (!ret)
		annotate_find_take_calls(&c->find, &calls);
	annotate_find_deinit(&calls);
	reader_close(&in);
	return ret;
}

static int annotate_search(struct annotate_command *c, struct err *e)
{
	const struct annotate_options *o = c->opt;
	const bool counted = c->in.p->counted && !o->event;
	struct annotate_query q = o->query;
	int ret;

	q.children = o->children;
	ret = annotate_find(&c->find, &q, e);
	if (!ret && counted && o->children)
		ret = find_counted_calls(c, &q, e);
	if (!ret && o->children && !c->find.chains)
		ret = err_set(e, ENODATA,
			      "%s: --children needs call chains, and its samples have none",
			      c->input);
	return ret;
}

/* Reads the profile `input`. The caller calls annotate_unload() in either case. */
static int annotate_load(struct annotate_command *c, const struct annotate_options *o,
			 const char *input, struct err *e)
{
	int ret;

	*c = (struct annotate_command){ .opt = o, .input = input };
	demangle_names_init(&c->display, o->no_demangle ? DEMANGLE_NONE : DEMANGLE_PROGRAMS);
	c->find.display = &c->display;
	c->find.in = &c->in;
	ret = annotate_open(c, e);
	ret = ret ? ret : srcline_create(&c->kernel, &o->places, e);
	if (ret)
		return ret;
	if (c->in.p->partial)
		fprintf(stderr, "kvmprof: %s: %s\n", input, c->in.p->message);
	srcline_set_profile(c->kernel, c->in.p);
	c->in.lines = c->kernel;
	ret = annotate_search(c, e);
	return ret ? ret : annotate_one(c, e);
}

static void annotate_unload(struct annotate_command *c)
{
	annotate_destroy(c->annotate);
	annotate_lines_close(c->lines);
	annotate_text_deinit(&c->text);
	annotate_find_deinit(&c->find);
	srcline_destroy(c->kernel);
	demangle_names_deinit(&c->display);
	reader_close(&c->in);
}

static struct annotate_side side_of(struct annotate_command *c)
{
	const bool children = c->opt->children;

	return (struct annotate_side){
		.a = c->annotate,
		.input = c->input,
		.function = function_shown(c, c->fn),
		.dso = c->fn->dso,
		.weight = children ? c->fn->children : c->annotate->weight,
		.samples = children ? c->fn->children_samples : c->annotate->samples,
		.total_samples = c->find.samples,
		.total_weight = c->find.weight,
		.counted = c->in.p->counted,
	};
}

static int output_diff(struct annotate_command *base, struct annotate_command *head, struct err *e)
{
	const struct annotate_options *o = head->opt;
	const struct annotate_side b = side_of(base), h = side_of(head);
	const enum annotate_compared what = o->children ? ANNOTATE_WITH_CALLEES : ANNOTATE_SELF;
	struct buf out;
	int ret;

	if (strcmp(base->in.p->event, head->in.p->event) != 0)
		fprintf(stderr, "kvmprof: %s has the event %s, but %s has %s\n", base->input,
			annotate_event_of(base), head->input, annotate_event_of(head));
	buf_init(&out);
	ret = o->json ? annotate_diff_json(&out, &b, &h, what, e)
		      : annotate_diff_text(&out, &b, &h, what, e);
	ret = ret ? ret : outfile_write(o->output ? o->output : "-", out.data, out.len, e);
	buf_deinit(&out);
	return ret;
}

static int annotate_run(const struct annotate_options *o, struct err *e)
{
	struct annotate_command c, base;
	int ret = annotate_load(&c, o, o->input, e);

	if (!ret && o->base) {
		ret = annotate_load(&base, o, o->base, e);
		ret = ret ? ret : output_diff(&base, &c, e);
		annotate_unload(&base);
	} else if (!ret) {
		ret = annotate_output(&c, e);
	}
	annotate_unload(&c);
	return ret;
}

static int parse_percent(void *at, char *arg, struct err *e)
{
	struct annotate_options *o = at;

	(void)e;
	o->percent = !strcmp(arg, "global-period") ? ANNOTATE_GLOBAL : ANNOTATE_LOCAL;
	return o->percent == ANNOTATE_GLOBAL || !strcmp(arg, "local-period") ? 0 : -EINVAL;
}

static int parse_dsos(void *at, char *arg, struct err *e)
{
	(void)e;
	return selection_parse_texts(at, arg);
}

static const char *const syntaxes[] = { [DISASM_ATT] = "att", [DISASM_INTEL] = "intel", NULL };

#define OPTION_STRUCT struct annotate_options

static const struct option_row rows[] = {
	CMD_INPUT(input),
	{ "output", 'o', "FILE", "write to FILE instead of standard output",
	  OPTION_TEXT_OF(output, "a file") },
	{ "dsos", 'd', "NAME,...", "only functions of these modules, programs and libraries",
	  OPTION_CALL_AT(parse_dsos, selection.dso, "a name") },
	{ "dso", 0, "NAME,...", NULL, OPTION_CALL_AT(parse_dsos, selection.dso, "a name") },
	{ "symbol", 's', "NAME", NULL, OPTION_TEXT(symbol) },
	{ "children", 0, NULL,
	  "beside each instruction the samples whose stacks pass\n"
	  "through it, too: time below each call",
	  OPTION_PUT(children, true) },
	{ "diff", 0, "BASE",
	  "compare with the profile BASE, in percent of each profile\n"
	  "unless --percent-type says otherwise",
	  OPTION_TEXT_OF(base, "a profile") },
	{ "percent-type", 0, "TYPE",
	  "local-period: of the function's time (default);\n"
	  "global-period: of the profile's",
	  OPTION_CALL(parse_percent, "local-period or global-period") },
	{ "disassembler-style", 'M', "SYNTAX", "att (default) or intel",
	  OPTION_WORD(syntax, syntaxes) },
	{ "att", 0, NULL, "the same as -M att", OPTION_PUT(syntax, DISASM_ATT) },
	{ "intel", 0, NULL, "the same as -M intel", OPTION_PUT(syntax, DISASM_INTEL) },
	{ "json", 0, NULL, "one JSON object", OPTION_PUT(json, true) },
	{ "no-source", 0, NULL, "without source lines", OPTION_PUT(no_source, true) },
	{ "full-source-path", 0, NULL, "paths of source files instead of their names",
	  OPTION_PUT(full_path, true) },
	CMD_NO_DEMANGLE(no_demangle),
	CMD_BUILDID_DIR(buildid_dir),
	{ "stdio", 0, NULL, "accepted, as there is no other interface", OPTION_PUT(stdio, true) },
	OPTION_ROWS(cmd_debuginfo_rows, places),
	OPTION_HEADING("\nWhich samples:\n"),
	CMD_EVENT(event),
	CMD_EPOCH(epoch),
	OPTION_ROWS(selection_sample_rows, selection),
	OPTION_HELP,
	{ 0 },
};

static const struct option_set set = {
	.usage = "Usage: kvmprof annotate [OPTIONS] [PROFILE] FUNCTION|ADDRESS\n"
		 "\n"
		 "The instructions of a function, with the share of its samples at each, as they\n"
		 "were in the guest's memory. `*` marks those that the kernel has patched, with "
		 "what\n"
		 "its image has there. Arrows are jumps inside of the function. ADDRESS (0x...) "
		 "is\n"
		 "the kernel's run-time address, or one of a program's file. Of several functions "
		 "of a\n"
		 "name NAME@FILE selects by source file, NAME#2 the second by address.\n"
		 "\n",
	.rows = rows,
};

int cmd_annotate(int argc, char **argv)
{
	static const char by_default[] = "perf.data";
	static struct annotate_options o = { .input = by_default }; /* large lists */
	struct err e = { 0 };
	int status = cmd_options(&set, &o, argc, argv);

	if (status >= 0)
		return status;
	if (!o.symbol)
		cmd_take_profile(argc, argv, by_default, &o.input);
	o.places.cache_dir = o.buildid_dir;
	o.query.text = o.symbol ? o.symbol : optind < argc ? argv[optind++] : "";
	if (!*o.query.text)
		return cmd_wrong(argv, "which function? `kvmprof report` lists them");
	if (optind < argc)
		return cmd_wrong_usage(argv, "unexpected argument", argv[optind]);
	if (selection_check(&o.selection, &e))
		return cmd_wrong(argv, e.text);
	o.query.selection = &o.selection;
	if (o.percent == ANNOTATE_DEFAULT)
		o.percent = o.base ? ANNOTATE_GLOBAL : ANNOTATE_LOCAL;
	cmd_debuginfo_show_progress(&o.places);
	status = cmd_status(annotate_run(&o, &e), &e);
	selection_deinit(&o.selection);
	return status;
}

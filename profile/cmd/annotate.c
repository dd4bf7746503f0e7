/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_annotate: `kvmprof annotate`: a function's instructions as they were in the guest's
 * memory, with the time spent at each.
 */
#include "profile/cmd/cmd.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/outfile.h"
#include "profile/analyse/annotate/lines.h"
#include "profile/analyse/annotate/print.h"
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
	const char *symbol; /* -s, as perf has it; NULL: it is a word */
	struct annotate_query query;
	enum disasm_syntax syntax;
	bool json, full_path, no_demangle, no_source;
	bool stdio; /* as always */
	struct debuginfo_places places;
};

struct annotate_command {
	const struct annotate_options *opt;
	struct reader in;
	struct annotate_find find;
	struct display_names display;
	const struct annotate_function *fn;
	struct annotate_text text;
	struct annotate_lines *lines;
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

static int function_choose(struct annotate_command *c, struct err *e)
{
	const char *text = c->opt->query.text;

	for (size_t i = 0; i < c->find.count; i++)
		if (c->find.function[i].wanted)
			c->fn = &c->find.function[i];
	if (c->find.nwanted == 1)
		return 0;
	/* The message lists them. */
	if (!c->find.nwanted && c->find.why.code)
		return err_set(e, c->find.why.code, "%s", c->find.why.text);
	list_candidates(c, c->find.nwanted > 1);
	if (c->find.nwanted)
		return err_set(
			e, EEXIST,
			"%s: %zu functions, listed above; choose by address, by NAME#NUMBER or "
			"NAME@FILE, or with --dsos",
			text, c->find.nwanted);
	return err_set(e, ENOENT, "%s: no sample of %s is in such a function", text, c->opt->input);
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

static void annotate_put_heading(struct annotate_command *c, struct buf *b)
{
	size_t at = b->len, n;

	if (c->in.p->counted)
		buf_printf(b,
			   " Percent          Count |      Disassembly of %s in %s for %s (%" PRIu64
			   " counted), code from %s\n",
			   function_shown(c, c->fn), c->fn->dso, annotate_event_of(c),
			   c->annotate->weight, c->text.source);
	else
		buf_printf(b,
			   " Percent |      Disassembly of %s in %s for %s (%" PRIu64
			   " samples, percent: local period), code from %s\n",
			   function_shown(c, c->fn), c->fn->dso, annotate_event_of(c),
			   c->fn->samples, c->text.source);
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
		 "image_known", json_of_bool(c->text.image), "patched", a->ndiffer);
	annotate_json(&w, "instructions", a);
	json_object_end(&w);
	buf_u8(b, '\n');
}

static int annotate_output(struct annotate_command *c, struct err *e)
{
	const struct annotate_options *o = c->opt;
	struct annotate_style style = {
		.color = !o->output && pager_wants_color(),
		.full_path = o->full_path,
		.source = c->lines ? annotate_lines_source : NULL,
		.source_ctx = c->lines,
		.counts = c->in.p->counted,
	};
	struct buf b;
	int ret;

	buf_init(&b);
	if (o->json) {
		annotate_put_json(c, &b);
	} else {
		annotate_put_heading(c, &b);
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

static int annotate_one(struct annotate_command *c, struct srcline *kernel, struct err *e)
{
	struct annotate_input in = {
		.name = annotate_name_of,
		.line = annotate_line_of,
		.ctx = c,
		.syntax = c->opt->syntax,
	};
	int ret = function_choose(c, e);

	if (ret)
		return ret;
	ret = annotate_text(&c->text, c->fn, c->opt->buildid_dir, e);
	if (ret)
		return ret;
	ret = annotate_open_lines(c, kernel, e);
	if (ret)
		return ret;
	in.addr = c->fn->addr;
	in.live = c->text.live;
	in.image = c->text.image;
	in.len = c->text.len;
	in.hit = c->fn->at;
	in.nhits = c->fn->nhits;
	in.function = function_shown(c, c->fn);
	ret = annotate_build(&c->annotate, &in, e);
	ret = ret ? ret : annotate_output(c, e);
	annotate_destroy(c->annotate);
	return ret;
}

/* For exact counts, uses the event with a count for each instruction. */
static int annotate_open(const struct annotate_options *o, struct reader *in, struct err *e)
{
	struct reader_options from = { .input = o->input,
				       .buildid_dir = o->buildid_dir,
				       .event = o->event,
				       .epoch = o->epoch };
	int ret = reader_open(in, &from, e);

	if (ret || o->event || !in->p->counted)
		return ret;
	reader_close(in);
	from.event = COUNTED_EXEC;
	return reader_open(in, &from, e);
}

static int annotate_run(const struct annotate_options *o, struct err *e)
{
	struct annotate_command c = { .opt = o };
	struct selection_window window;
	struct srcline *kernel = NULL;
	int ret;

	demangle_names_init(&c.display, o->no_demangle ? DEMANGLE_NONE : DEMANGLE_PROGRAMS);
	c.find.display = &c.display;
	c.find.in = &c.in;
	ret = annotate_open(o, &c.in, e);
	if (!ret)
		ret = selection_set_window(&o->selection, c.in.p, o->input, o->buildid_dir, &window,
					   e);
	ret = ret ? ret : srcline_create(&kernel, &o->places, e);
	if (!ret) {
		if (c.in.p->partial)
			fprintf(stderr, "kvmprof: %s: %s\n", o->input, c.in.p->message);
		srcline_set_profile(kernel, c.in.p);
		c.in.lines = kernel;
		ret = annotate_find(&c.find, &o->query, e);
	}
	ret = ret ? ret : annotate_one(&c, kernel, e);
	annotate_lines_close(c.lines);
	annotate_text_deinit(&c.text);
	annotate_find_deinit(&c.find);
	srcline_destroy(kernel);
	demangle_names_deinit(&c.display);
	reader_close(&c.in);
	return ret;
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
	cmd_debuginfo_show_progress(&o.places);
	status = cmd_status(annotate_run(&o, &e), &e);
	selection_deinit(&o.selection);
	return status;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_annotate: `kvmprof annotate`: a function's instructions as they were in the guest's
 * memory, with the time spent at each.
 */
#include "profile/cmd/cmd.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "profile/annotate/lines.h"
#include "profile/cmd/common.h"
#include "profile/cmd/debuginfo.h"
#include "profile/perfdata/format.h"
#include "profile/stacks/slices.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_LISTED 20u

struct options {
	const char *phase; /* NULL: all */
	const char *input, *output, *buildid_dir;
	struct annotate_query query;
	bool intel, json, full_path, no_demangle, no_source;
	struct debuginfo_places places;
};

struct command {
	const struct options *opt;
	struct annotate_find find;
	struct display_names display;
	const struct annotate_function *fn;
	struct annotate_text text;
	struct annotate_lines *lines;
	struct annotate *annotate;
};

static void usage(FILE *f)
{
	fputs("Usage: kvmprof annotate [OPTIONS] SYMBOL|ADDRESS\n"
	      "\n"
	      "The instructions of a function, with the share of its samples at each, as they\n"
	      "were in the guest's memory. `*` marks those that the kernel has patched, with what\n"
	      "its image has there. Arrows are jumps inside of the function. ADDRESS (0x...) is\n"
	      "the kernel's run-time address, or one of a program's file.\n"
	      "\n"
	      "  -i, --input FILE       the profile (default: perf.data)\n"
	      "  -o, --output FILE      write there instead of to standard output\n"
	      "  -d, --dso NAME         only functions of this module, program or library\n"
	      "      --phase NAME       samples of this phase of a boot, or from this marker to\n"
	      "                         the next: see `kvmprof report --phase'\n"
	      "      --att, --intel     syntax (default: --att); -M att and -M intel are the same\n"
	      "      --json             one JSON object\n"
	      "      --no-source        without source lines\n"
	      "      --full-source-path paths of source files instead of their names\n"
	      "      --no-demangle      names of C++ and Rust functions as they are\n"
	      "      --buildid-dir DIR  perf's build-id cache (default: ~/.debug)\n"
	      "      --stdio            accepted, as there is no other "
	      "interface\n" CMD_DEBUGINFO_USAGE "  -h, --help             this text\n",
	      f);
}

/* -- which function ------------------------------------------------------------------- */

static const char *shown(struct command *c, const struct annotate_function *fn)
{
	return display_name(&c->display, fn->symbol, fn->kernel);
}

static void list(struct command *c, const struct annotate_function *fn)
{
	fprintf(stderr, "  0x%016" PRIx64 " %10" PRIu64 "  %s  (%s)\n", fn->addr, fn->samples,
		shown(c, fn), fn->dso);
}

static bool looks_like(struct command *c, const struct annotate_function *fn)
{
	return !c->find.by_address && (strstr(fn->symbol->name, c->opt->query.text) ||
				       strstr(shown(c, fn), c->opt->query.text));
}

/* Lists what was meant perhaps: those that match, else those whose names contain the text. */
static void list_candidates(struct command *c, bool wanted)
{
	unsigned int n = 0;

	for (size_t i = 0; i < c->find.count && n <= MAX_LISTED; i++) {
		const struct annotate_function *fn = &c->find.function[i];

		if (wanted ? !fn->wanted : !looks_like(c, fn))
			continue;
		if (n == 0)
			fputs("             address    samples  function\n", stderr);
		if (n++ < MAX_LISTED)
			list(c, fn);
		else
			fputs("  ...\n", stderr);
	}
}

static int choose(struct command *c, struct err *e)
{
	const char *text = c->opt->query.text;

	for (size_t i = 0; i < c->find.count; i++)
		if (c->find.function[i].wanted)
			c->fn = &c->find.function[i];
	if (c->find.nwanted == 1)
		return 0;
	list_candidates(c, c->find.nwanted > 1);
	if (c->find.nwanted)
		return err_set(e, EEXIST,
			       "%s: %zu functions, listed above; choose by address or with --dso",
			       text, c->find.nwanted);
	return err_set(e, ENOENT, "%s: no sample of %s is in such a function", text, c->opt->input);
}

/* -- callbacks ------------------------------------------------------------------------ */

static const char *name_of(void *ctx, uint64_t addr, uint64_t *off)
{
	struct command *c = ctx;
	struct name name;

	names_lookup_in(c->find.n, c->fn->view, c->fn->kernel, addr + c->fn->bias, &name);
	*off = name.off;
	return name.symbol ? display_name(&c->display, name.symbol, c->fn->kernel) : NULL;
}

static bool line_of(void *ctx, uint64_t addr, struct annotate_line *out)
{
	struct command *c = ctx;

	return c->lines && annotate_lines_at(c->lines, addr, out);
}

/* -- output --------------------------------------------------------------------------- */

static const char *event_of(const struct command *c)
{
	return c->find.p->event[0] ? c->find.p->event : "event";
}

static void put_heading(struct command *c, struct buf *b)
{
	size_t at = b->len, n;

	buf_printf(b,
		   " Percent |      Disassembly of %s in %s for %s (%" PRIu64
		   " samples, percent: local period), code from %s\n",
		   shown(c, c->fn), c->fn->dso, event_of(c), c->fn->samples, c->text.source);
	n = b->len - at - 1;
	for (size_t i = 0; i < n; i++)
		buf_u8(b, '-');
	buf_u8(b, '\n');
}

/* What the reader should know to read the table right. */
static void put_notes(struct command *c, struct buf *b)
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
				   : "the kernel's image was not at hand, or has this for its "
				     "start alone");
	if (a->undrawn)
		buf_printf(b, "# %" PRIu32 " jump targets without an arrow: too many cross\n",
			   a->undrawn);
	if (a->outside)
		buf_printf(b, "# %.2f %% lies behind the last byte that could be read\n",
			   100.0 * (double)a->outside / (double)a->weight);
}

static void put_json(struct command *c, struct buf *b)
{
	const struct annotate *a = c->annotate;

	buf_printf(b, "{\"symbol\":");
	annotate_json_string(b, shown(c, c->fn));
	buf_printf(b, ",\"dso\":");
	annotate_json_string(b, c->fn->dso);
	buf_printf(b, ",\"event\":");
	annotate_json_string(b, event_of(c));
	buf_printf(b,
		   ",\"address\":\"0x%" PRIx64 "\",\"size\":%" PRIu64 ",\"samples\":%" PRIu64
		   ",\"weight\":%" PRIu64 ",\"code_from\":",
		   c->fn->addr, c->fn->size, a->samples, a->weight);
	annotate_json_string(b, c->text.source);
	buf_printf(b, ",\"image_known\":%s,\"patched\":%zu,\n\"instructions\":",
		   c->text.image ? "true" : "false", a->ndiffer);
	annotate_json(b, a);
	buf_printf(b, "}\n");
}

static int write_out(const struct options *o, const struct buf *b, struct err *e)
{
	bool is_file = o->output && strcmp(o->output, "-") != 0;
	int fd = STDOUT_FILENO, ret;

	if (is_file) {
		fd = open(o->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		if (fd < 0)
			return err_set(e, errno, "%s: cannot create: %s", o->output,
				       strerror(errno));
	}
	ret = file_write_all(fd, b->data, b->len);
	if (is_file && close(fd) < 0 && !ret)
		ret = -errno;
	return ret ? err_set(e, -ret, "cannot write to %s: %s",
			     is_file ? o->output : "standard output", strerror(-ret))
		   : 0;
}

static int print(struct command *c, struct err *e)
{
	const struct options *o = c->opt;
	struct annotate_style style = {
		.color = !o->output && isatty(STDOUT_FILENO),
		.full_path = o->full_path,
		.source = c->lines ? annotate_lines_source : NULL,
		.source_ctx = c->lines,
	};
	struct buf b;
	int ret;

	buf_init(&b);
	if (o->json) {
		put_json(c, &b);
	} else {
		put_heading(c, &b);
		annotate_print(&b, c->annotate, &style);
		put_notes(c, &b);
	}
	ret = b.failed ? err_set(e, ENOMEM, "out of memory") : write_out(o, &b, e);
	buf_deinit(&b);
	return ret;
}

/* -- command -------------------------------------------------------------------------- */

static int open_lines(struct command *c, struct srcline *kernel, struct err *e)
{
	const struct debuginfo_places *places = &c->opt->places;
	struct err why = { 0 };
	int ret;

	if (c->opt->no_source)
		return 0;
	ret = annotate_lines_open(&c->lines, c->fn, &c->text, kernel, places, &why, e);
	/* Told only to those who asked for them. */
	if (!ret && why.code && (places->given || places->map_file))
		fprintf(stderr, "kvmprof: no source lines: %s\n", why.text);
	return ret;
}

static int annotate_one(struct command *c, struct srcline *kernel, struct err *e)
{
	struct annotate_input in = {
		.name = name_of,
		.line = line_of,
		.ctx = c,
		.intel = c->opt->intel,
	};
	int ret = choose(c, e);

	ret = ret ? ret : annotate_text(&c->text, &c->find, c->fn, c->opt->buildid_dir, e);
	ret = ret ? ret : open_lines(c, kernel, e);
	if (ret)
		return ret;
	in.addr = c->fn->addr;
	in.live = c->text.live;
	in.image = c->text.image;
	in.len = c->text.len;
	in.hit = c->fn->at;
	in.nhits = c->fn->nhits;
	in.function = shown(c, c->fn);
	ret = annotate_build(&c->annotate, &in, e);
	ret = ret ? ret : print(c, e);
	annotate_destroy(c->annotate);
	return ret;
}

/* The kernel's map says where source lines are. */
static void show_maps(struct srcline *kernel, struct perfdata *p)
{
	struct perfdata_record r;

	srcline_set_profile(kernel, p);
	while (perfdata_next(p, &r))
		if (r.kind == PERFDATA_MAP)
			srcline_set_map(kernel, &r);
	perfdata_rewind(p);
}

static int annotate(const struct options *o, struct err *e)
{
	struct command c = { .opt = o };
	struct srcline *kernel = NULL;
	int ret;

	display_names_init(&c.display, !o->no_demangle, false);
	c.find.display = &c.display;
	ret = perfdata_open(&c.find.p, o->input, e);
	if (!ret && o->phase)
		ret = slices_set_window(c.find.p, o->input, o->buildid_dir, o->phase, e);
	ret = ret ? ret : names_create(&c.find.n, c.find.p, o->buildid_dir, e);
	ret = ret ? ret : srcline_create(&kernel, &o->places, e);
	if (!ret) {
		if (c.find.p->partial)
			fprintf(stderr, "kvmprof: %s: %s\n", o->input, c.find.p->message);
		show_maps(kernel, c.find.p);
		ret = annotate_find(&c.find, &o->query, e);
	}
	ret = ret ? ret : annotate_one(&c, kernel, e);
	annotate_lines_close(c.lines);
	annotate_text_deinit(&c.text);
	annotate_find_deinit(&c.find);
	srcline_destroy(kernel);
	display_names_deinit(&c.display);
	names_destroy(c.find.n);
	perfdata_close(c.find.p);
	return ret;
}

int cmd_annotate(int argc, char **argv)
{
	enum {
		OPT_BUILDID_DIR = 256,
		OPT_FULL,
		OPT_NO_DEMANGLE,
		OPT_PHASE,
		OPT_NO_SOURCE,
		OPT_INTEL,
		OPT_ATT,
		OPT_JSON,
		OPT_STDIO
	};
	static const struct option long_options[] = {
		{ "input", required_argument, NULL, 'i' },
		{ "output", required_argument, NULL, 'o' },
		{ "dso", required_argument, NULL, 'd' },
		{ "dsos", required_argument, NULL, 'd' },
		{ "disassembler-style", required_argument, NULL, 'M' },
		{ "intel", no_argument, NULL, OPT_INTEL },
		{ "att", no_argument, NULL, OPT_ATT },
		{ "json", no_argument, NULL, OPT_JSON },
		{ "stdio", no_argument, NULL, OPT_STDIO },
		{ "no-source", no_argument, NULL, OPT_NO_SOURCE },
		{ "full-source-path", no_argument, NULL, OPT_FULL },
		{ "phase", required_argument, NULL, OPT_PHASE },
		{ "no-demangle", no_argument, NULL, OPT_NO_DEMANGLE },
		{ "buildid-dir", required_argument, NULL, OPT_BUILDID_DIR },
		CMD_DEBUGINFO_OPTIONS,
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct options o = { .input = "perf.data" };
	struct err e = { 0 };
	int c;

	optind = 1;
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":i:o:d:M:h", long_options, NULL)) != -1) {
		switch (c) {
		case 'i':
			o.input = optarg;
			break;
		case 'o':
			o.output = optarg;
			break;
		case 'd':
			o.query.dso = optarg;
			break;
		case 'M':
			if (strcmp(optarg, "intel") != 0 && strcmp(optarg, "att") != 0)
				return cmd_wrong_usage(argv, "-M takes att or intel, not", optarg);
			o.intel = !strcmp(optarg, "intel");
			break;
		case OPT_INTEL:
		case OPT_ATT:
			o.intel = c == OPT_INTEL;
			break;
		case OPT_JSON:
			o.json = true;
			break;
		case OPT_STDIO:
			break;
		case OPT_PHASE:
			o.phase = optarg;
			break;
		case OPT_NO_SOURCE:
			o.no_source = true;
			break;
		case OPT_FULL:
			o.full_path = true;
			break;
		case OPT_NO_DEMANGLE:
			o.no_demangle = true;
			break;
		case OPT_BUILDID_DIR:
			o.buildid_dir = o.places.cache_dir = optarg;
			break;
		case OPT_DEBUGINFO:
		case OPT_BUILD_ID_MAP:
			cmd_debuginfo_option(&o.places, c, optarg);
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			return cmd_wrong_option(argv, c);
		}
	}
	if (optind >= argc || !*argv[optind]) {
		fputs("kvmprof annotate: which function? `kvmprof report` lists them\n", stderr);
		return 2;
	}
	o.query.text = argv[optind++];
	if (optind < argc)
		return cmd_wrong_usage(argv, "unexpected argument", argv[optind]);
	if (isatty(STDERR_FILENO))
		o.places.progress = cmd_debuginfo_progress;
	if (annotate(&o, &e)) {
		fprintf(stderr, "kvmprof: %s\n", e.text);
		return 1;
	}
	return 0;
}

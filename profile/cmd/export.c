/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/cmd.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/outfile.h"
#include "profile/cmd/common.h"
#include "profile/analyse/export/coverage.h"
#include "profile/analyse/export/export.h"
#include "profile/format/perfdata/format.h"
#include "profile/format/perfdata/read.h"
#include "profile/format/sink/counted.h"
#include "profile/analyse/stacks/selection.h"
#include "profile/analyse/stacks/stackset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct cmd_export_options {
	struct stackset_options load;
	struct selection selection;
	struct export_options how;
	const struct export_format *format;
	const char *output; /* NULL: not said */
	struct debuginfo_places places;
};

static void export_list(FILE *f)
{
	const struct export_format *format;

	for (size_t i = 0; (format = export_at(i)); i++)
		fprintf(f, "  %-13s %s\n", format->name, format->help);
}

/* -- options -------------------------------------------------------------------------------- */

static int print_list(void *at, char *arg, struct err *e)
{
	(void)at;
	(void)arg;
	(void)e;
	export_list(stdout);
	return CMD_OPTION_ENDS;
}

static int parse_format(void *at, char *arg, struct err *e)
{
	struct cmd_export_options *o = at;

	(void)e;
	o->format = export_find(arg);
	return o->format ? 0 : -EINVAL;
}

static const char *const names[] = { "function", "offset", "both", NULL };

#define OPTION_STRUCT struct cmd_export_options

static const struct option_row rows[] = {
	{ "format", 'F', "FORMAT", "one of those below",
	  OPTION_CALL(parse_format, "a format; kvmprof export --list prints them") },
	CMD_INPUT(load.input),
	{ "output", 'o', "FILE",
	  "output file (default: standard output, \"-\"); for iprof\n"
	  "the directory to create, which is required",
	  OPTION_TEXT_OF(output, "a file") },
	{ "list", 0, NULL, "print the formats, and nothing else", OPTION_CALL(print_list, NULL) },
	CMD_BUILDID_DIR(load.buildid_dir),
	CMD_NO_DEMANGLE(load.no_demangle),
	OPTION_HEADING("\nNames (not perf-script, pprof and iprof, which have addresses):\n"),
	{ "names", 0, "WHAT",
	  "function, offset (function+0x1f), or both: the one within\n"
	  "the other (default: function)",
	  OPTION_WORD(how.names, names) },
	{ "relaxed", 0, NULL, "a function reaches to the next symbol, whatever its size",
	  OPTION_PUT(load.relaxed, true) },
	OPTION_HEADING("\nWeights and threads:\n"),
	{ "samples", 0, NULL, "count samples (default: their time, or event)",
	  OPTION_PUT(how.count_samples, true) },
	{ "per-thread", 0, NULL,
	  "separate threads with the same name (folded); a profile for each\n"
	  "thread instead of each vCPU (speedscope)",
	  OPTION_PUT(how.per_thread, true) },
	{ "tidy", 0, NULL,
	  "names as stackcollapse-perf.pl writes them, without\n"
	  "arguments, so that overloads become one (folded)",
	  OPTION_PUT(how.tidy, true) },
	{ "no-marks", 0, NULL,
	  "no marks after names (default: _[k] for the kernel and\n"
	  "_[j] for code without a file) (folded)",
	  OPTION_PUT(how.no_marks, true) },
	{ "per-pid", 0, NULL, "files for each process (iprof)", OPTION_PUT(how.per_pid, true) },
	OPTION_HEADING("\nSource lines (lcov):\n"),
	OPTION_ROWS(cmd_debuginfo_rows, places),
	OPTION_HEADING("\nWhich samples (not lcov):\n"),
	CMD_EVENT(load.event),
	CMD_EPOCH(load.epoch),
	SELECTION_ROWS(selection),
	OPTION_HELP,
	{ 0 },
};

/* -- output ---------------------------------------------------------------------------------- */

/* One of s and c. */
static int write_out(const struct cmd_export_options *o, const struct stackset *s,
		     const struct coverage *c, const struct outfile *to, struct err *e)
{
	struct export_out out;
	int ret = 0;

	export_out_init(&out, to->fd,
			o->format->wants & EXPORT_GZIP ? EXPORT_GZIPPED : EXPORT_UNPACKED);
	if (c)
		coverage_write_lcov(&out, c);
	else
		ret = o->format->write(&out, NULL, s, &o->how, e);
	if (!ret)
		ret = export_out_finish(&out, to->name, e);
	export_out_deinit(&out);
	return ret;
}

static int write_file(const struct cmd_export_options *o, const struct stackset *s,
		      const struct coverage *c, struct err *e)
{
	struct outfile out;
	int ret = outfile_open(&out, o->output, e);

	return ret ? ret : outfile_finish(&out, write_out(o, s, c, &out, e), e);
}

static int write_directory(const struct cmd_export_options *o, const struct stackset *s,
			   struct err *e)
{
	cleanup_free char *tmp = NULL;
	int ret;

	if (asprintf(&tmp, "%s.tmp-%d", o->output, (int)getpid()) < 0)
		return err_nomem(e);
	if (mkdir(tmp, 0777))
		return err_set(e, errno, "cannot make %s: %s", tmp, strerror(errno));
	ret = o->format->write(NULL, tmp, s, &o->how, e);
	/* Fails where there is something that is not empty: it may be anything. */
	if (!ret && rename(tmp, o->output))
		ret = err_set(e, errno, "cannot make the directory %s: %s; name a new one",
			      o->output, strerror(errno));
	if (ret)
		file_remove_tree(tmp, NULL);
	return ret;
}

/* -- lines ----------------------------------------------------------------------------------- */

static int export_lines(struct cmd_export_options *o, struct err *e)
{
	const struct coverage_options from = { o->load.input, o->load.buildid_dir, o->places };
	struct coverage *c = NULL;
	int ret = coverage_load(&c, &from, e);

	if (!ret && c->left_out)
		fprintf(stderr,
			"kvmprof: warning: of %llu units of the debug information lines or "
			"functions can't "
			"be read\n",
			(unsigned long long)c->left_out);
	if (!ret && c->elsewhere)
		fprintf(stderr,
			"kvmprof: of %llu instructions %llu are not in it: firmware, decompressor, "
			"modules "
			"and programs\n",
			(unsigned long long)(c->inside + c->elsewhere),
			(unsigned long long)c->elsewhere);
	ret = ret ? ret : write_file(o, NULL, c, e);
	coverage_destroy(c);
	return ret;
}

/* Loads the entries that belong to exact counts of instructions, where the format has them; older profiles have calls only. */
static int load_calls(struct stackset **out, const struct cmd_export_options *o,
		      const struct stackset *s, const struct stackset_options *load, struct err *e)
{
	struct stackset_options of_calls = *load;
	struct err none = { 0 };

	if (!s->counted || strcmp(s->event, COUNTED_INSTRUCTIONS) != 0 ||
	    !(o->format->wants & EXPORT_CALLS))
		return 0;
	of_calls.event = COUNTED_ENTRIES;
	if (!stackset_load(out, &of_calls, &none))
		return 0;
	of_calls.event = COUNTED_CALLS;
	return stackset_load(out, &of_calls, e);
}

/* Where the format takes all events at once, and none was asked for by name. */
struct other_events {
	struct stackset *set[PERFDATA_MAX_ATTRS];
	size_t n;
};

static int load_others(struct other_events *out, const struct stackset_options *load, struct err *e)
{
	struct perfdata *p = NULL;
	int ret = perfdata_open(&p, load->input ? load->input : "perf.data", e);

	for (uint32_t i = 0; !ret && i < p->nevents; i++) {
		struct stackset_options of = *load;
		struct stackset **set = &out->set[out->n];

		of.event = p->events[i].name;
		if (!p->events[i].samples || i == p->chosen ||
		    !strcmp(of.event, PERFDATA_MARKER_EVENT))
			continue;
		ret = stackset_load(set, &of, e);
		out->n += !ret;
	}
	perfdata_close(p);
	return ret;
}

static bool is_filtered(const struct cmd_export_options *o)
{
	return selection_selects(&o->selection) || selection_chooses(&o->selection);
}

static int export_profile(struct cmd_export_options *o, struct err *e)
{
	const char *input = o->load.input ? o->load.input : "perf.data";
	struct stackset *s = NULL, *calls = NULL;
	struct other_events others = { 0 };
	const struct stackset_options load = o->load;
	int ret = stackset_load(&s, &load, e);

	if (ret)
		return ret;
	cmd_report_missing(input, s);
	ret = s->samples ? load_calls(&calls, o, s, &load, e)
			 : err_set(e, ENODATA, "%s: %s", input,
				   *s->missed ? s->missed : "no sample is left to export");
	if (!ret && (o->format->wants & EXPORT_EVENTS) && !load.event && strcmp(input, "-") != 0)
		ret = load_others(&others, &load, e);
	o->how.calls = calls;
	o->how.filtered = is_filtered(o);
	o->how.others = others.set;
	o->how.nothers = others.n;
	if (!ret)
		ret = o->format->wants & EXPORT_DIRECTORY ? write_directory(o, s, e)
							  : write_file(o, s, NULL, e);
	while (others.n)
		stackset_destroy(others.set[--others.n]);
	stackset_destroy(calls);
	stackset_destroy(s);
	return ret;
}

/* 0, or what is wrong with the combination. */
static const char *export_contradiction(const struct cmd_export_options *o)
{
	if (!o->format)
		return "--format is missing; kvmprof export --list prints the formats";
	if ((o->format->wants & EXPORT_DIRECTORY) && (!o->output || !strcmp(o->output, "-")))
		return "this format is a directory: name it with --output";
	if ((o->format->wants & EXPORT_BINARY) && (!o->output || !strcmp(o->output, "-")) &&
	    isatty(STDOUT_FILENO))
		return "this format is not for a terminal: name a file with --output";
	if ((o->format->wants & EXPORT_COVERAGE) &&
	    (o->load.event || is_filtered(o) || o->how.count_samples))
		return "lcov covers all instructions: drop --event, --samples and what selects "
		       "samples or functions";
	if (!(o->format->wants & EXPORT_COVERAGE) && (o->places.given || o->places.map_file))
		return "--debuginfo and --build-id-map are for lcov";
	if (o->how.tidy && o->format != export_find("folded"))
		return "--tidy is for folded";
	if (o->how.no_marks && o->format != export_find("folded"))
		return "--no-marks is for folded";
	if (o->how.names != EXPORT_FUNCTION && !(o->format->wants & EXPORT_TEXT_NAMES))
		return "--names has no effect in this format, which has addresses: drop it";
	return NULL;
}

int cmd_export(int argc, char **argv)
{
	cleanup_free char *formats = NULL;
	size_t len;
	FILE *f = open_memstream(&formats, &len);
	struct option_set set = {
		.usage = "Usage: kvmprof export --format FORMAT [OPTIONS] [PROFILE]\n"
			 "\n"
			 "A profile in the format of another tool.\n"
			 "\n",
		.rows = rows,
		.order = OPTION_ALONE,
	};
	static struct cmd_export_options o = { .how.version = KVMPROF_VERSION }; /* large lists */
	const char *wrong;
	struct err e = { 0 };
	int status;

	if (f) {
		fputs("\nFormats:\n", f);
		export_list(f);
		fclose(f);
		set.after = formats;
	}
	status = cmd_options(&set, &o, argc, argv);
	if (status >= 0)
		return status;
	if (selection_check(&o.selection, &e))
		return cmd_wrong(argv, e.text);
	wrong = export_contradiction(&o);
	if (wrong)
		return cmd_wrong(argv, wrong);
	o.output = o.output ? o.output : "-";
	o.places.cache_dir = o.load.buildid_dir;
	if (o.format->wants & EXPORT_COVERAGE) {
		cmd_debuginfo_show_progress(&o.places);
		return cmd_status(export_lines(&o, &e), &e);
	}
	o.load.keep_samples = o.format->wants & EXPORT_SAMPLES;
	o.load.selection = &o.selection;
	status = cmd_status(export_profile(&o, &e), &e);
	selection_deinit(&o.selection);
	return status;
}

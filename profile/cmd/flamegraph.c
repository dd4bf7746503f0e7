/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/cmd.h"

#include "base/cleanup.h"
#include "base/outfile.h"
#include "profile/cmd/common.h"
#include "profile/analyse/flame/flamechart.h"
#include "profile/analyse/flame/svg.h"
#include "profile/analyse/stacks/selection.h"
#include "profile/analyse/stacks/phases.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_OUTPUT "flamegraph.svg"
#define DEFAULT_WIDTH 1200u
#define DEFAULT_MIN_WIDTH 0.1
#define LEAST_MIN_WIDTH 0.001

struct flamegraph_options {
	struct stackset_options load;
	struct selection selection;
	struct frametree_options tree;
	struct flame_picture picture; /* title, width... */
	const char *output, *base;
	bool chart;
	enum flamechart_lanes lanes;
};

/* Bands come from the whole profile: what a selection leaves does not tell where a phase began. */
static int find_phases(struct phases *out, const struct flamegraph_options *o,
		       const struct stackset *s, struct err *e)
{
	struct stackset_options all = { 0 };
	struct stackset *whole = NULL;
	int ret;

	if (!selection_selects(&o->selection) && !selection_chooses(&o->selection))
		return phases_find(out, s, e);
	all.input = o->load.input;
	all.event = o->load.event;
	all.buildid_dir = o->load.buildid_dir;
	all.keep_samples = all.no_demangle = true;
	ret = stackset_load(&whole, &all, e);
	ret = ret ? ret : phases_find(out, whole, e);
	stackset_destroy(whole);
	return ret;
}

static int draw_chart(struct flamegraph_options *o, const struct stackset *s, struct err *e)
{
	struct phases phases;
	int ret = find_phases(&phases, o, s, e);

	return ret ? ret : flamechart_build(&o->picture, s, o->lanes, &phases, e);
}

static int draw_graph(const struct flamegraph_options *o, struct flame_picture *p,
		      struct frametree *t, const struct stackset *s, const struct stackset *base,
		      struct err *e)
{
	int ret = frametree_add(t, s, FRAMETREE_SHOWN, e);

	if (!ret && base)
		ret = frametree_add(t, base, FRAMETREE_BASE, e);
	if (ret)
		return ret;
	ret = frametree_finish(t, e);
	if (ret)
		return ret;
	if (base && !base->weight)
		return err_set(e, ENODATA, "%s: there are no samples to compare with", o->base);
	return flamegraph_build(p, t, base ? FLAME_DIFFERENCE : FLAME_PROFILE, e);
}

/* The two lines at the top of the picture. */
struct captions {
	char title[256], subtitle[512];
};

static void flamegraph_caption(struct captions *c, struct flamegraph_options *o,
			       const struct stackset *s)
{
	const char *kind = o->chart  ? "Flame chart"
			   : o->base ? "Flame graph of a difference"
				     : "Flame graph";
	double span = s->last_ns > s->first_ns ? (double)(s->last_ns - s->first_ns) / 1e9 : 0;
	size_t n;

	snprintf(c->title, sizeof(c->title), "%s%s%.64s", kind, s->osrelease[0] ? ": Linux " : "",
		 s->osrelease);
	if (!o->picture.title)
		o->picture.title = c->title;
	n = (size_t)(s->counted ? snprintf(c->subtitle, sizeof(c->subtitle),
					   "%" PRIu64 " %.32s counted, in %" PRIu64 " stacks",
					   s->weight, s->event, s->samples)
				: snprintf(c->subtitle, sizeof(c->subtitle),
					   "%" PRIu64 " samples (%.32s) over %.3f s", s->samples,
					   s->event[0] ? s->event : "an event", span));
	if (s->ncpus && n < sizeof(c->subtitle))
		n += (size_t)snprintf(c->subtitle + n, sizeof(c->subtitle) - n, " on %u %sCPU%s",
				      s->ncpus, s->ours ? "v" : "", s->ncpus == 1 ? "" : "s");
	if (o->base && n < sizeof(c->subtitle))
		n += (size_t)snprintf(c->subtitle + n, sizeof(c->subtitle) - n, ", against %.128s",
				      o->base);
	if (o->tree.reverse && n < sizeof(c->subtitle))
		n += (size_t)snprintf(c->subtitle + n, sizeof(c->subtitle) - n, ", reversed");
	if (s->lost && n < sizeof(c->subtitle))
		n += (size_t)snprintf(c->subtitle + n, sizeof(c->subtitle) - n,
				      ", %" PRIu64 " lost", s->lost);
	if (s->partial && n < sizeof(c->subtitle))
		snprintf(c->subtitle + n, sizeof(c->subtitle) - n, ", PARTIAL: %.160s", s->message);
	o->picture.subtitle = c->subtitle;
	o->picture.event = s->event;
	o->picture.weight_is_ns = s->weight_is_ns;
	o->picture.counted = s->counted;
}

static int flamegraph_load(struct stackset **out, const struct stackset_options *opt,
			   const char *name, struct err *e)
{
	int ret = stackset_load(out, opt, e);

	if (!ret)
		cmd_report_missing(name, *out);
	if (!ret && !(*out)->samples)
		ret = err_set(e, ENODATA, "%s: %s", name,
			      *(*out)->missed ? (*out)->missed
			      : selection_selects(opt->selection)
				      ? "no samples are left: see --comms, --pid, --cpu, --time, "
					"--phase and --kernel-only"
				      : "there are no samples in it");
	return ret;
}

static int flamegraph_make(struct flamegraph_options *o, struct err *e)
{
	const char *input = o->load.input ? o->load.input : "perf.data";
	struct stackset *s = NULL, *base = NULL;
	struct frametree *t = NULL;
	struct captions c;
	struct buf out;
	int ret;

	buf_init(&out);
	o->load.keep_samples = o->chart;
	ret = flamegraph_load(&s, &o->load, input, e);
	if (!ret && o->chart && s->counted)
		ret = err_set(e, EINVAL,
			      "%s: has exact counts of the whole run, which a chart over time "
			      "cannot show: drop --chart",
			      input);
	if (!ret && o->base) {
		struct stackset_options with = o->load;

		with.input = o->base;
		ret = flamegraph_load(&base, &with, o->base, e);
	}
	if (!ret) {
		flamegraph_caption(&c, o, s);
		if (o->chart)
			ret = draw_chart(o, s, e);
		else
			ret = frametree_create(&t, &o->tree, e);
	}
	if (!ret && !o->chart)
		ret = draw_graph(o, &o->picture, t, s, base, e);
	if (!ret) {
		flame_write(&out, &o->picture, flame_format_of(o->output));
		ret = out.failed ? err_set(e, ENOMEM, "out of memory for the picture's file")
				 : outfile_write(o->output, out.data, out.len, e);
	}
	buf_deinit(&out);
	flame_picture_deinit(&o->picture);
	frametree_destroy(t);
	stackset_destroy(base);
	stackset_destroy(s);
	return ret;
}

static const char *const tasks[] = { "none", "comm", "thread", NULL };

static int parse_lanes(void *at, char *arg, struct err *e)
{
	struct flamegraph_options *o = at;

	(void)e;
	o->chart = true;
	o->lanes = !strcmp(arg, "thread") ? FLAMECHART_BY_THREAD : FLAMECHART_BY_CPU;
	return o->lanes == FLAMECHART_BY_THREAD || !strcmp(arg, "cpu") ? 0 : -EINVAL;
}

#define OPTION_STRUCT struct flamegraph_options

static const struct option_row rows[] = {
	CMD_INPUT(load.input),
	{ "output", 'o', "FILE",
	  ".svg or .html; - is standard output, SVG (default:\n" DEFAULT_OUTPUT ")",
	  OPTION_TEXT_OF(output, "a file") },
	{ "inverted", 0, NULL, "the outermost frames at the top (icicle)",
	  OPTION_PUT(picture.inverted, true) },
	{ "reverse", 0, NULL, "innermost functions first, their callers above them",
	  OPTION_PUT(tree.reverse, true) },
	{ "by", 0, "TASK", "stacks below comm (default), thread or none",
	  OPTION_WORD(tree.task, tasks) },
	{ "diff", 0, "BASE",
	  "what grew (red) and shrank (blue) since the profile\n"
	  "BASE, in shares of the whole",
	  OPTION_TEXT_OF(base, "a profile") },
	{ "chart", 0, NULL, "over time: one lane for each vCPU; boots with phases",
	  OPTION_PUT(chart, true) },
	{ "lanes", 0, "WHAT", "lanes of the chart: cpu (default) or thread",
	  OPTION_CALL(parse_lanes, "cpu or thread") },
	{ "where", 0, NULL, "group first by the state of the vCPU's thread (run -e host)",
	  OPTION_PUT(load.where, true) },
	{ "title", 0, "TEXT", "title (default: event and kernel)", OPTION_TEXT(picture.title) },
	{ "width", 0, "N", "pixels (default: as wide as the window)",
	  OPTION_WHOLE(picture.width, FLAME_MIN_WIDTH, FLAME_MAX_WIDTH,
		       "a number from 300 to 20000") },
	{ "min-width", 0, "N", "merge frames narrower than N pixels (default: 0.1)",
	  OPTION_REAL(picture.min_width, 0, FLAME_MAX_WIDTH, "a number from 0 to 20000") },
	CMD_EVENT(load.event),
	CMD_EPOCH(load.epoch),
	SELECTION_ROWS(selection),
	CMD_NO_DEMANGLE(load.no_demangle),
	CMD_BUILDID_DIR(load.buildid_dir),
	OPTION_HELP,
	{ 0 },
};

static const struct option_set set = {
	.usage = "Usage: kvmprof flamegraph [OPTIONS] [PROFILE]\n"
		 "\n"
		 "Draw a profile as a picture in one file, for any browser, without a network.\n"
		 "\n",
	.after = "\n"
		 "In the browser: click a frame to zoom in, `back' (Backspace) to undo, `reset\n"
		 "zoom' (Esc); Ctrl-F searches names by a regular expression and shows the share\n"
		 "of time under all that match.\n",
	.rows = rows,
	.order = OPTION_ALONE,
};

int cmd_flamegraph(int argc, char **argv)
{
	static struct flamegraph_options o = {
		/* large lists */
		.tree = { .task = FRAMETREE_TASK_COMM },
		.picture = { .min_width = DEFAULT_MIN_WIDTH },
		.output = DEFAULT_OUTPUT,
	};
	struct err e = { 0 };
	int status = cmd_options(&set, &o, argc, argv);

	if (status >= 0)
		return status;
	if (selection_check(&o.selection, &e))
		return cmd_wrong(argv, e.text);
	o.load.selection = &o.selection;
	o.tree.clones_are_one = o.base != NULL;
	if (o.chart && (o.base || o.tree.reverse))
		return cmd_wrong(argv, "--chart cannot be combined with --diff or --reverse");
	if (!flame_path_is_fit(o.output, &e))
		return cmd_wrong(argv, e.text);
	/* A width that was asked for is kept; otherwise the picture has its window's. */
	o.picture.fixed = o.picture.width != 0;
	if (!o.picture.width)
		o.picture.width = DEFAULT_WIDTH;
	if (o.picture.min_width < LEAST_MIN_WIDTH)
		o.picture.min_width = LEAST_MIN_WIDTH;
	status = cmd_status(flamegraph_make(&o, &e), &e);
	selection_deinit(&o.selection);
	if (!status && strcmp(o.output, "-") != 0)
		fprintf(stderr, "kvmprof: wrote %s; open it in a browser\n", o.output);
	return status;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/cmd.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "profile/flame/flamechart.h"
#include "profile/stacks/slices.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_OUTPUT "flamegraph.svg"
#define DEFAULT_WIDTH 1200u
#define DEFAULT_MIN_WIDTH 0.1
#define LEAST_MIN_WIDTH 0.001

struct options {
	struct stackset_options load;
	struct frametree_options tree;
	struct flame_picture picture; /* title, width... */
	const char *output, *base, *phase;
	bool chart;
	enum flamechart_lanes lanes;
};

static void usage(FILE *f)
{
	fputs("Usage: kvmprof flamegraph [OPTIONS]\n"
	      "\n"
	      "A profile as a picture in one file, for any browser, without a network.\n"
	      "\n"
	      "  -i, --input FILE       the profile (default: perf.data)\n"
	      "  -o, --output FILE      .svg or .html; - is standard output, SVG (default:\n"
	      "                         " DEFAULT_OUTPUT ")\n"
	      "      --inverted         the outermost frames at the top (icicle)\n"
	      "      --reverse          innermost functions first, their callers above them\n"
	      "      --by TASK          stacks below comm (default), thread or none\n"
	      "      --diff BASE        what grew (red) and shrank (blue) since the profile\n"
	      "                         BASE, in shares of the whole\n"
	      "      --chart            over time: one lane for each vCPU; boots with phases\n"
	      "      --lanes WHAT       lanes of the chart: cpu (default) or thread\n"
	      "      --title TEXT       default: what and which kernel\n"
	      "      --width N          pixels (default: 1200)\n"
	      "      --min-width N      merge frames narrower than N pixels (default: 0.1)\n"
	      "      --event NAME       of several events this one (default: the first)\n"
	      "      --comm NAME        samples of tasks of this name only\n"
	      "      --pid N            of this process\n"
	      "      --cpu N            on this vCPU\n"
	      "      --time A,B         from A to B, seconds since the first sample; A, and\n"
	      "                         ,B do, too\n"
	      "      --phase NAME       of this phase of a boot, or from this marker to the\n"
	      "                         next: see `kvmprof report --phase'\n"
	      "      --kernel-only      kernel frames only, of samples that have some\n"
	      "      --no-demangle      names of C++ and Rust functions as they are\n"
	      "      --buildid-dir DIR  perf's build-id cache (default: ~/.debug)\n"
	      "  -h, --help             this text\n"
	      "\n"
	      "In the browser: click a frame to zoom in, `back' (Backspace) to undo, `reset\n"
	      "zoom' (Esc); Ctrl-F searches names by a regular expression and tells the share\n"
	      "of time under all that match.\n",
	      f);
}

static bool is_filtered(const struct stackset_options *o)
{
	return o->comm || o->pid >= 0 || o->cpu >= 0 || o->kernel_only || o->from_s > 0 ||
	       o->to_s > 0;
}

/* Bands come from the whole profile: what a filter leaves does not tell where a phase began. */
static int find_phases(struct phases *out, const struct options *o, const struct stackset *s,
		       struct err *e)
{
	struct stackset_options all = STACKSET_OPTIONS_DEFAULT;
	struct stackset *whole = NULL;
	int ret;

	if (!is_filtered(&o->load))
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

static int draw_chart(struct options *o, const struct stackset *s, struct err *e)
{
	struct phases phases;
	int ret = find_phases(&phases, o, s, e);

	return ret ? ret : flamechart_build(&o->picture, s, o->lanes, &phases, e);
}

static int draw_graph(const struct options *o, struct flame_picture *p, struct frametree *t,
		      const struct stackset *s, const struct stackset *base, struct err *e)
{
	int ret = frametree_add(t, s, FRAMETREE_SHOWN, e);

	if (!ret && base)
		ret = frametree_add(t, base, FRAMETREE_BASE, e);
	if (!ret)
		ret = frametree_finish(t, e);
	if (!ret && base && !base->weight)
		ret = err_set(e, ENODATA, "%s: there are no samples to compare with", o->base);
	return ret ? ret : flamegraph_build(p, t, base, e);
}

/* Into the file, which is removed if it can't be completed. */
static int write_out(const char *path, const struct buf *b, struct err *e)
{
	cleanup_close int file = -1;
	int fd = STDOUT_FILENO, ret;

	if (b->failed)
		return err_set(e, ENOMEM, "out of memory for the picture's file");
	if (strcmp(path, "-") != 0) {
		file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		if (file < 0)
			return err_set(e, errno, "%s: cannot create: %s", path, strerror(errno));
		fd = file;
	}
	ret = file_write_all(fd, b->data, b->len);
	if (ret && file >= 0)
		unlink(path);
	return ret ? err_set(e, -ret, "%s: cannot write: %s", file < 0 ? "standard output" : path,
			     strerror(-ret))
		   : 0;
}

static enum flame_format format_of(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot && (!strcasecmp(dot, ".html") || !strcasecmp(dot, ".htm")) ? FLAME_HTML
									      : FLAME_SVG;
}

/* What the picture is of: two lines at its top. */
struct captions {
	char title[256], subtitle[512];
};

static void caption(struct captions *c, struct options *o, const struct stackset *s)
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
	n = (size_t)snprintf(c->subtitle, sizeof(c->subtitle),
			     "%" PRIu64 " samples (%.32s) over %.3f s", s->samples,
			     s->event[0] ? s->event : "an event", span);
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
}

static int load(struct stackset **out, const struct stackset_options *opt, const char *name,
		struct err *e)
{
	int ret = stackset_load(out, opt, e);

	if (!ret && (*out)->partial)
		fprintf(stderr, "kvmprof: %s: %s\n", name, (*out)->message);
	if (!ret && !(*out)->samples)
		ret = err_set(e, ENODATA, "%s: %s", name,
			      is_filtered(opt) ? "no samples are left: see --comm, --pid, --cpu, "
						 "--time, --phase and --kernel-only"
					       : "there are no samples in it");
	return ret;
}

static int flamegraph(struct options *o, struct err *e)
{
	const char *input = o->load.input ? o->load.input : "perf.data";
	struct stackset *s = NULL, *base = NULL;
	struct frametree *t = NULL;
	struct captions c;
	struct buf out;
	int ret;

	buf_init(&out);
	o->load.keep_samples = o->chart;
	ret = o->phase ? slices_set_options(&o->load, o->phase, e) : 0;
	ret = ret ? ret : load(&s, &o->load, input, e);
	if (!ret && o->base) {
		struct stackset_options with = o->load;

		with.input = o->base;
		if (o->phase)
			ret = slices_set_options(&with, o->phase, e);
		ret = ret ? ret : load(&base, &with, o->base, e);
	}
	if (!ret) {
		caption(&c, o, s);
		if (o->chart)
			ret = draw_chart(o, s, e);
		else
			ret = frametree_create(&t, &o->tree, e);
	}
	if (!ret && !o->chart)
		ret = draw_graph(o, &o->picture, t, s, base, e);
	if (!ret) {
		flamegraph_write(&out, &o->picture, format_of(o->output));
		ret = write_out(o->output, &out, e);
	}
	buf_deinit(&out);
	flame_picture_deinit(&o->picture);
	frametree_destroy(t);
	stackset_destroy(base);
	stackset_destroy(s);
	return ret;
}

static bool parse_number(const char *text, double *out, double min, double max, const char *what)
{
	char *end;

	errno = 0;
	*out = strtod(text, &end);
	if (end != text && !*end && !errno && isfinite(*out) && *out >= min && *out <= max)
		return true;
	fprintf(stderr, "kvmprof flamegraph: bad %s '%s': a number from %g to %g\n", what, text,
		min, max);
	return false;
}

static bool parse_index(const char *text, int64_t *out, const char *what)
{
	char *end;
	unsigned long v;

	errno = 0;
	v = strtoul(text, &end, 10);
	if (*text >= '0' && *text <= '9' && !*end && !errno && v <= UINT32_MAX) {
		*out = (int64_t)v;
		return true;
	}
	fprintf(stderr, "kvmprof flamegraph: bad %s '%s'\n", what, text);
	return false;
}

/* "1.5,3", "1.5," or ",3" */
static bool parse_time(struct stackset_options *o, const char *text)
{
	char *end = (char *)text;

	o->from_s = o->to_s = 0;
	if (*text != ',')
		o->from_s = strtod(text, &end);
	if (*end == ',' && end[1]) {
		o->to_s = strtod(end + 1, &end);
		if (!*end && isfinite(o->from_s) && isfinite(o->to_s) && o->from_s >= 0 &&
		    o->to_s > o->from_s)
			return true;
	} else if (end != text && (!*end || !strcmp(end, ",")) && isfinite(o->from_s) &&
		   o->from_s >= 0) {
		return true;
	}
	fprintf(stderr,
		"kvmprof flamegraph: bad --time '%s': two times in seconds, A,B with A less than "
		"B\n",
		text);
	return false;
}

/* One of two or three words; -1 after a message. */
static int parse_word(const char *option, const char *text, const char *const *word, int n)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(text, word[i]))
			return i;
	fprintf(stderr, "kvmprof flamegraph: %s takes %s%s%s or %s, not '%s'\n", option, word[0],
		n > 2 ? ", " : "", n > 2 ? word[1] : "", word[n - 1], text);
	return -1;
}

enum {
	OPT_INVERTED = 256,
	OPT_REVERSE,
	OPT_BY,
	OPT_DIFF,
	OPT_CHART,
	OPT_LANES,
	OPT_TITLE,
	OPT_WIDTH,
	OPT_MIN_WIDTH,
	OPT_EVENT,
	OPT_COMM,
	OPT_PID,
	OPT_CPU,
	OPT_TIME,
	OPT_PHASE,
	OPT_KERNEL_ONLY,
	OPT_NO_DEMANGLE,
	OPT_BUILDID_DIR,
};

static bool take_number(struct options *o, int c, const char *arg)
{
	double v = 0;
	bool ok;

	switch (c) {
	case OPT_WIDTH:
		ok = parse_number(arg, &v, FLAME_MIN_WIDTH, FLAME_MAX_WIDTH, "--width");
		o->picture.width = (unsigned int)v;
		return ok;
	case OPT_MIN_WIDTH:
		ok = parse_number(arg, &v, 0, FLAME_MAX_WIDTH, "--min-width");
		o->picture.min_width = v < LEAST_MIN_WIDTH ? LEAST_MIN_WIDTH : v;
		return ok;
	case OPT_PID:
		return parse_index(arg, &o->load.pid, "--pid");
	case OPT_CPU:
		return parse_index(arg, &o->load.cpu, "--cpu");
	default:
		return parse_time(&o->load, arg);
	}
}

static bool take_word(struct options *o, int c, const char *arg)
{
	static const char *const tasks[] = { "none", "comm", "thread" };
	static const char *const lanes[] = { "cpu", "thread" };
	int i;

	if (c == OPT_BY) {
		i = parse_word("--by", arg, tasks, ARRAY_SIZE(tasks));
		o->tree.task = (enum frametree_task)i;
	} else {
		i = parse_word("--lanes", arg, lanes, ARRAY_SIZE(lanes));
		o->lanes = (enum flamechart_lanes)i;
		o->chart = true;
	}
	return i >= 0;
}

static bool take_option(struct options *o, int c, const char *arg)
{
	switch (c) {
	case 'i':
		o->load.input = arg;
		return true;
	case 'o':
		o->output = arg;
		return true;
	case OPT_INVERTED:
		return o->picture.inverted = true;
	case OPT_REVERSE:
		return o->tree.reverse = true;
	case OPT_DIFF:
		o->base = arg;
		return true;
	case OPT_CHART:
		return o->chart = true;
	case OPT_TITLE:
		o->picture.title = arg;
		return true;
	case OPT_PHASE:
		o->phase = arg;
		return true;
	case OPT_EVENT:
		o->load.event = arg;
		return true;
	case OPT_COMM:
		o->load.comm = arg;
		return true;
	case OPT_KERNEL_ONLY:
		return o->load.kernel_only = true;
	case OPT_NO_DEMANGLE:
		return o->load.no_demangle = true;
	case OPT_BUILDID_DIR:
		o->load.buildid_dir = arg;
		return true;
	case OPT_BY:
	case OPT_LANES:
		return take_word(o, c, arg);
	default:
		return take_number(o, c, arg);
	}
}

int cmd_flamegraph(int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "input", required_argument, NULL, 'i' },
		{ "output", required_argument, NULL, 'o' },
		{ "inverted", no_argument, NULL, OPT_INVERTED },
		{ "reverse", no_argument, NULL, OPT_REVERSE },
		{ "by", required_argument, NULL, OPT_BY },
		{ "diff", required_argument, NULL, OPT_DIFF },
		{ "chart", no_argument, NULL, OPT_CHART },
		{ "lanes", required_argument, NULL, OPT_LANES },
		{ "title", required_argument, NULL, OPT_TITLE },
		{ "width", required_argument, NULL, OPT_WIDTH },
		{ "min-width", required_argument, NULL, OPT_MIN_WIDTH },
		{ "event", required_argument, NULL, OPT_EVENT },
		{ "comm", required_argument, NULL, OPT_COMM },
		{ "pid", required_argument, NULL, OPT_PID },
		{ "cpu", required_argument, NULL, OPT_CPU },
		{ "time", required_argument, NULL, OPT_TIME },
		{ "phase", required_argument, NULL, OPT_PHASE },
		{ "kernel-only", no_argument, NULL, OPT_KERNEL_ONLY },
		{ "no-demangle", no_argument, NULL, OPT_NO_DEMANGLE },
		{ "buildid-dir", required_argument, NULL, OPT_BUILDID_DIR },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct options o = {
		.load = STACKSET_OPTIONS_DEFAULT,
		.tree = { .task = FRAMETREE_TASK_COMM },
		.picture = { .width = DEFAULT_WIDTH, .min_width = DEFAULT_MIN_WIDTH },
		.output = DEFAULT_OUTPUT,
	};
	struct err e = { 0 };
	int c;

	optind = 1;
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":i:o:h", long_options, NULL)) != -1) {
		if (c == 'h') {
			usage(stdout);
			return 0;
		}
		if (c == ':' || c == '?') {
			fprintf(stderr,
				"kvmprof flamegraph: %s '%s' (try kvmprof flamegraph --help)\n",
				c == ':' ? "missing value for" : "unknown option",
				argv[optind - 1]);
			return 2;
		}
		if (!take_option(&o, c, optarg))
			return 2;
	}
	if (optind < argc) {
		fprintf(stderr, "kvmprof flamegraph: unexpected argument '%s'\n", argv[optind]);
		return 2;
	}
	if (o.phase && (o.load.from_s > 0 || o.load.to_s > 0)) {
		fprintf(stderr, "kvmprof flamegraph: --phase and --time both say when: drop one\n");
		return 2;
	}
	if (o.chart && (o.base || o.tree.reverse)) {
		fprintf(stderr,
			"kvmprof flamegraph: --chart goes with neither --diff nor --reverse\n");
		return 2;
	}
	if (flamegraph(&o, &e)) {
		fprintf(stderr, "kvmprof: %s\n", e.text);
		return 1;
	}
	return 0;
}

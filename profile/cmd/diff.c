/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/cmd.h"

#include "base/cleanup.h"
#include "profile/cmd/common.h"
#include "profile/stacks/diff.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_ROWS 40u
#define DEFAULT_MIN_SHARE 0.05 /* % */
#define MAX_WIDTH 48

enum form { FORM_TEXT, FORM_JSON, FORM_CSV };

struct side {
	const char *path[RUNSTATS_MAX_RUNS]; /* borrowed */
	unsigned int n;
};

struct options {
	struct side base, head;
	const char *output;
	unsigned long top;
	enum form form;
	struct diff_options diff;
	struct stackset_options load;
};

static void usage(FILE *f)
{
	fputs("Usage: kvmprof diff [OPTIONS] BASE[,BASE...] HEAD[,HEAD...]\n"
	      "       kvmprof diff [OPTIONS] --base FILE... --head FILE...\n"
	      "\n"
	      "What changed from BASE to HEAD, in percentage points of all time, largest first.\n"
	      "With two or more runs a side it also says how sure that is: p (how often runs\n"
	      "dealt to the sides by chance differ as much), q (p, corrected for the number of\n"
	      "rows: of those with q below 0.05, at most about one in twenty is by chance) and\n"
	      "an interval for the change. With one run a side none of that can be known.\n"
	      "\n"
	      "      --base FILE        a profile of the base; may be given several times\n"
	      "      --head FILE        likewise of what is compared with it\n"
	      "      --stacks           a row for each stack instead of each function\n"
	      "      --order ORDER      compare what functions spent themselves (self, default),\n"
	      "                         or with what they called (children)\n"
	      "      --no-idle          shares of the time in which a vCPU ran\n"
	      "  -n, --top N            rows to show, 0 for all (default: 40)\n"
	      "      --min-share PCT    leave out what is below that on the average of all runs\n"
	      "                         (default: 0.05), children included\n"
	      "      --comm NAME        only samples of tasks of this name\n"
	      "      --kernel-only      only the kernel's part of stacks\n"
	      "      --time FROM,TO     only samples of this span, in seconds of each run\n"
	      "      --seed N           for what is drawn by chance (default: 1)\n"
	      "      --json, --csv      for programs: shares in percent, for each run in JSON\n"
	      "  -o, --output FILE      write there (default: -, standard output)\n"
	      "      --no-demangle      names of C++ and Rust functions as they are\n"
	      "      --buildid-dir DIR  perf's build-id cache (default: ~/.debug)\n"
	      "  -h, --help             this text\n",
	      f);
}

/* -- text -------------------------------------------------------------------------------- */

static void print_side(FILE *f, const char *what, const struct side *s, const struct diff_run *run)
{
	for (unsigned int i = 0; i < s->n; i++)
		fprintf(f, "# %s %s: %" PRIu64 " samples\n", what, s->path[i], run[i].samples);
}

static void print_header(FILE *f, const struct diff *d, const struct options *o)
{
	const struct runstats *s = &d->stats;

	print_side(f, "base", &o->base, d->run);
	print_side(f, "head", &o->head, d->run + s->na);
	if (s->deal && s->exact)
		fprintf(f,
			"# %u runs against %u: p from all %zu ways to deal them (none can be below "
			"%.4g)",
			s->na, s->nb, s->ndeals, s->p_least);
	else if (s->deal)
		fprintf(f, "# %u runs against %u: p from %u random deals", s->na, s->nb,
			RUNSTATS_RESAMPLES);
	if (s->deal)
		fprintf(f, ", interval of 95 %% from %u resamples, seed %" PRIu64 "\n",
			RUNSTATS_RESAMPLES, s->seed);
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

static void print_text(FILE *f, const struct diff *d, const struct options *o, size_t rows)
{
	bool noise = d->stats.na == 1 && d->stats.nb == 1;
	int width = name_width(d, rows);

	print_header(f, d, o);
	fprintf(f, "#  Change%s%s", d->stats.deal ? "   95 % interval        p      q" : "",
		noise ? "  Noise" : "");
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
		if (o->diff.stacks)
			fprintf(f, " %6.2f%% %6.2f%%  %-6s  %s\n", 100 * r->self_a, 100 * r->self_b,
				r->mode, r->name);
		else
			fprintf(f, " %10.2f%% %6.2f%% %14.2f%% %6.2f%%  %-6s  %-*s  %s\n",
				100 * r->self_a, 100 * r->self_b, 100 * r->children_a,
				100 * r->children_b, r->mode, width, r->name, short_dso(r->dso));
	}
	if (rows < d->nrows)
		fprintf(f, "# and %zu more (-n 0 shows all)\n", d->nrows - rows);
	if (d->left_out)
		fprintf(f, "# left out: %zu below %g %%, children included (--min-share)\n",
			d->left_out, 100 * o->diff.min_share);
}

/* -- JSON and CSV -------------------------------------------------------------------------- */

static void put_json_string(FILE *f, const char *s)
{
	putc('"', f);
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			fprintf(f, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			fprintf(f, "\\u%04x", c);
		else
			putc(c, f);
	}
	putc('"', f);
}

static void put_json_side(FILE *f, const char *what, const struct side *s,
			  const struct diff_run *run)
{
	fprintf(f, "\"%s\":[", what);
	for (unsigned int i = 0; i < s->n; i++) {
		fprintf(f, "%s{\"input\":", i ? "," : "");
		put_json_string(f, s->path[i]);
		fprintf(f, ",\"samples\":%" PRIu64 ",\"weight\":%" PRIu64 "}", run[i].samples,
			run[i].weight);
	}
	fputs("],\n", f);
}

static void put_json_runs(FILE *f, const char *what, const double *v, const struct runstats *s)
{
	fprintf(f, ",\"%s_runs\":[[", what);
	for (unsigned int i = 0; i < s->na + s->nb; i++)
		fprintf(f, "%s%.6g", i == s->na ? "],[" : i ? "," : "", 100 * v[i]);
	fputs("]]", f);
}

static void put_json_row(FILE *f, const struct diff_row *r, const struct diff *d, bool stacks)
{
	fprintf(f, "{\"mode\":\"%s\",\"%s\":", r->mode, stacks ? "stack" : "symbol");
	put_json_string(f, r->name);
	if (!stacks) {
		fputs(",\"dso\":", f);
		put_json_string(f, r->dso);
	}
	fprintf(f, ",\"change\":%.6g,\"self\":[%.6g,%.6g]", 100 * r->stat.diff, 100 * r->self_a,
		100 * r->self_b);
	if (!stacks)
		fprintf(f, ",\"children\":[%.6g,%.6g]", 100 * r->children_a, 100 * r->children_b);
	if (r->stat.tested)
		fprintf(f, ",\"interval\":[%.6g,%.6g],\"p\":%.6g,\"q\":%.6g", 100 * r->stat.lo,
			100 * r->stat.hi, r->stat.p, r->q);
	if (d->stats.na == 1 && d->stats.nb == 1)
		fprintf(f, ",\"noise\":%.6g", 100 * r->noise);
	put_json_runs(f, "self", r->self, &d->stats);
	if (!stacks)
		put_json_runs(f, "children", r->children, &d->stats);
	putc('}', f);
}

static void print_json(FILE *f, const struct diff *d, const struct options *o, size_t rows)
{
	const struct runstats *s = &d->stats;

	putc('{', f);
	put_json_side(f, "base", &o->base, d->run);
	put_json_side(f, "head", &o->head, d->run + s->na);
	fprintf(f, "\"compared\":\"%s\",\"no_idle\":%s,\"tested\":%s",
		o->diff.by_children ? "children" : "self", o->diff.no_idle ? "true" : "false",
		s->deal ? "true" : "false");
	if (s->deal)
		fprintf(f, ",\"exact\":%s,\"deals\":%zu,\"least_p\":%.6g,\"seed\":%" PRIu64,
			s->exact ? "true" : "false", s->ndeals, s->p_least, s->seed);
	fprintf(f, ",\"rows_total\":%zu,\"left_out\":%zu,\n\"rows\":[", d->nrows, d->left_out);
	for (size_t i = 0; i < rows; i++) {
		fputs(i ? ",\n" : "\n", f);
		put_json_row(f, &d->row[i], d, o->diff.stacks);
	}
	fputs("\n]}\n", f);
}

/* RFC 4180 */
static void put_csv(FILE *f, const char *s)
{
	putc('"', f);
	for (; *s; s++) {
		if (*s == '"')
			putc('"', f);
		putc(*s, f);
	}
	putc('"', f);
}

static void print_csv(FILE *f, const struct diff *d, const struct options *o, size_t rows)
{
	fprintf(f,
		"change,self_base,self_head,children_base,children_head,noise,low,high,p,q,mode,"
		"%s,dso\r\n",
		o->diff.stacks ? "stack" : "symbol");
	for (size_t i = 0; i < rows; i++) {
		const struct diff_row *r = &d->row[i];

		fprintf(f, "%.6g,%.6g,%.6g,%.6g,%.6g,", 100 * r->stat.diff, 100 * r->self_a,
			100 * r->self_b, 100 * r->children_a, 100 * r->children_b);
		if (d->stats.na == 1 && d->stats.nb == 1)
			fprintf(f, "%.6g", 100 * r->noise);
		if (r->stat.tested)
			fprintf(f, ",%.6g,%.6g,%.6g,%.6g,", 100 * r->stat.lo, 100 * r->stat.hi,
				r->stat.p, r->q);
		else
			fputs(",,,,,", f);
		fprintf(f, "%s,", r->mode);
		put_csv(f, r->name);
		putc(',', f);
		put_csv(f, r->dso);
		fputs("\r\n", f);
	}
}

/* -- command ---------------------------------------------------------------------------------- */

/* What is not the same on both sides, and so makes shares mean different things. */
struct first_run {
	bool there, weight_is_ns;
	char event[64];
};

static int add_run(struct diff *d, const char *path, const struct options *o,
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
	if (s->partial)
		fprintf(stderr, "kvmprof: %s: %s\n", path, s->message);
	if (first->there &&
	    (strcmp(first->event, s->event) || first->weight_is_ns != s->weight_is_ns))
		fprintf(stderr, "kvmprof: %s: its event is %s, that of the first run %s\n", path,
			s->event, first->event);
	if (!first->there)
		snprintf(first->event, sizeof(first->event), "%s", s->event);
	first->weight_is_ns = s->weight_is_ns;
	first->there = true;
	ret = diff_add(d, s, &why);
	if (ret)
		err_set(e, -ret, "%s: %s", path, why.text);
	stackset_destroy(s);
	return ret;
}

static int print(const struct diff *d, const struct options *o, struct err *e)
{
	size_t rows = o->top && o->top < d->nrows ? o->top : d->nrows;
	bool to_file = o->output && strcmp(o->output, "-") != 0;
	FILE *f = to_file ? fopen(o->output, "w") : stdout;
	bool bad;

	if (!f)
		return err_set(e, errno, "cannot write %s: %s", o->output, strerror(errno));
	if (o->form == FORM_JSON)
		print_json(f, d, o, rows);
	else if (o->form == FORM_CSV)
		print_csv(f, d, o, rows);
	else
		print_text(f, d, o, rows);
	bad = fflush(f) != 0 || ferror(f);
	if (to_file && fclose(f) != 0)
		bad = true;
	return bad ? err_set(e, EIO, "cannot write to %s", to_file ? o->output : "standard output")
		   : 0;
}

static int compare(const struct options *o, struct err *e)
{
	struct first_run first = { 0 };
	struct diff *d = NULL;
	int ret = diff_create(&d, o->base.n, o->head.n, &o->diff, e);

	for (unsigned int i = 0; i < o->base.n && !ret; i++)
		ret = add_run(d, o->base.path[i], o, &first, e);
	for (unsigned int i = 0; i < o->head.n && !ret; i++)
		ret = add_run(d, o->head.path[i], o, &first, e);
	ret = ret ? ret : diff_finish(d, e);
	ret = ret ? ret : print(d, o, e);
	diff_destroy(d);
	return ret;
}

static bool add_path(struct side *s, const char *path)
{
	if (s->n == RUNSTATS_MAX_RUNS) {
		fprintf(stderr, "kvmprof diff: more than %u runs a side\n", RUNSTATS_MAX_RUNS);
		return false;
	}
	s->path[s->n++] = path;
	return true;
}

/* "a,b,c", cut in place; a path that exists as it is may have commas. */
static bool add_paths(struct side *s, char *list)
{
	char *save = NULL;

	if (access(list, F_OK) == 0)
		return add_path(s, list);
	for (char *p = strtok_r(list, ",", &save); p; p = strtok_r(NULL, ",", &save))
		if (!add_path(s, p))
			return false;
	return true;
}

static bool parse_real(const char *s, char end, double *out, const char **rest)
{
	char *stop;

	errno = 0;
	*out = strtod(s, &stop);
	*rest = stop + 1;
	return stop != s && *stop == end && !errno && isfinite(*out) && *out >= 0;
}

static bool parse_span(struct stackset_options *o, const char *text)
{
	const char *rest = text;
	bool ok = true;

	if (*rest == ',')
		rest++;
	else
		ok = parse_real(rest, ',', &o->from_s, &rest);
	if (ok && *rest)
		ok = parse_real(rest, '\0', &o->to_s, &rest) && o->to_s > o->from_s;
	if (!ok)
		fprintf(stderr, "kvmprof diff: bad span '%s' (like 1.5,3 or 2,)\n", text);
	return ok;
}

static bool parse_number(const char *what, const char *s, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(s, &end, 10);
	if (*s >= '0' && *s <= '9' && !*end && !errno)
		return true;
	fprintf(stderr, "kvmprof diff: bad %s '%s'\n", what, s);
	return false;
}

enum {
	OPT_BASE = 256,
	OPT_HEAD,
	OPT_STACKS,
	OPT_ORDER,
	OPT_NO_IDLE,
	OPT_MIN_SHARE,
	OPT_COMM,
	OPT_KERNEL_ONLY,
	OPT_TIME,
	OPT_SEED,
	OPT_JSON,
	OPT_CSV,
	OPT_NO_DEMANGLE,
	OPT_BUILDID_DIR,
};

static bool parse_option(struct options *o, int c, char *arg)
{
	const char *rest;
	uint64_t n;

	switch (c) {
	case OPT_BASE:
		return add_path(&o->base, arg);
	case OPT_HEAD:
		return add_path(&o->head, arg);
	case OPT_STACKS:
		return o->diff.stacks = true;
	case OPT_ORDER:
		o->diff.by_children = !strcmp(arg, "children");
		if (o->diff.by_children || !strcmp(arg, "self"))
			return true;
		fprintf(stderr, "kvmprof diff: no such order '%s': self or children\n", arg);
		return false;
	case OPT_NO_IDLE:
		return o->diff.no_idle = true;
	case 'n':
		if (!parse_number("number of rows", arg, &n))
			return false;
		o->top = n;
		return true;
	case OPT_MIN_SHARE:
		if (parse_real(arg, '\0', &o->diff.min_share, &rest) && o->diff.min_share <= 100) {
			o->diff.min_share /= 100;
			return true;
		}
		fprintf(stderr, "kvmprof diff: bad share '%s' (percent)\n", arg);
		return false;
	case OPT_COMM:
		o->load.comm = arg;
		return true;
	case OPT_KERNEL_ONLY:
		return o->load.kernel_only = true;
	case OPT_TIME:
		return parse_span(&o->load, arg);
	case OPT_SEED:
		return parse_number("seed", arg, &o->diff.seed);
	case OPT_JSON:
		o->form = FORM_JSON;
		return true;
	case OPT_CSV:
		o->form = FORM_CSV;
		return true;
	case OPT_NO_DEMANGLE:
		return o->load.no_demangle = true;
	case OPT_BUILDID_DIR:
		o->load.buildid_dir = arg;
		return true;
	default: /* 'o' */
		o->output = arg;
		return true;
	}
}

static bool take_arguments(struct options *o, int argc, char **argv)
{
	if (optind < argc && (o->base.n || o->head.n)) {
		fprintf(stderr, "kvmprof diff: unexpected argument '%s' beside --base and --head\n",
			argv[optind]);
		return false;
	}
	if (optind + 2 < argc) {
		fprintf(stderr,
			"kvmprof diff: unexpected argument '%s': several runs of one side are "
			"one argument, A1,A2\n",
			argv[optind + 2]);
		return false;
	}
	if (optind + 2 == argc &&
	    (!add_paths(&o->base, argv[optind]) || !add_paths(&o->head, argv[optind + 1])))
		return false;
	if (o->base.n && o->head.n)
		return true;
	fputs("kvmprof diff: needs two profiles to compare (try kvmprof diff --help)\n", stderr);
	return false;
}

int cmd_diff(int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "base", required_argument, NULL, OPT_BASE },
		{ "head", required_argument, NULL, OPT_HEAD },
		{ "stacks", no_argument, NULL, OPT_STACKS },
		{ "order", required_argument, NULL, OPT_ORDER },
		{ "no-idle", no_argument, NULL, OPT_NO_IDLE },
		{ "top", required_argument, NULL, 'n' },
		{ "min-share", required_argument, NULL, OPT_MIN_SHARE },
		{ "comm", required_argument, NULL, OPT_COMM },
		{ "kernel-only", no_argument, NULL, OPT_KERNEL_ONLY },
		{ "time", required_argument, NULL, OPT_TIME },
		{ "seed", required_argument, NULL, OPT_SEED },
		{ "json", no_argument, NULL, OPT_JSON },
		{ "csv", no_argument, NULL, OPT_CSV },
		{ "output", required_argument, NULL, 'o' },
		{ "no-demangle", no_argument, NULL, OPT_NO_DEMANGLE },
		{ "buildid-dir", required_argument, NULL, OPT_BUILDID_DIR },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	cleanup_free struct options *o = calloc(1, sizeof(*o));
	struct err e = { 0 };
	int c;

	if (!o) {
		fputs("kvmprof: out of memory\n", stderr);
		return 1;
	}
	o->top = DEFAULT_ROWS;
	o->diff = (struct diff_options){ .min_share = DEFAULT_MIN_SHARE / 100,
					 .seed = RUNSTATS_SEED };
	o->load = STACKSET_OPTIONS_DEFAULT;
	optind = 1;
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":n:o:h", long_options, NULL)) != -1) {
		if (c == 'h') {
			usage(stdout);
			return 0;
		}
		if (c == ':' || c == '?')
			return cmd_wrong_option(argv, c);
		if (!parse_option(o, c, optarg))
			return 2;
	}
	if (!take_arguments(o, argc, argv))
		return 2;
	if (compare(o, &e)) {
		fprintf(stderr, "kvmprof: %s\n", e.text);
		return 1;
	}
	return 0;
}

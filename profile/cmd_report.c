/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd.h"

#include "profile/agg.h"
#include "profile/cmd_debuginfo.h"
#include "profile/display_name.h"
#include "profile/names.h"
#include "profile/perfdata_read.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_ROWS 40u

#define DEFAULT_KEYS "mode,sym,dso"
#define CELL_SIZE 64
#define MAX_WIDTH 48 /* of a column; longer texts push the rest of their line */

struct report_options {
	const char *input, *buildid_dir;
	unsigned long top;
	bool by_self, no_children, json, no_demangle;
	struct debuginfo_places places;
	struct agg_config config;
};

static void usage(FILE *f)
{
	char keys[256];

	agg_key_list(keys, sizeof(keys));
	fprintf(f,
		"Usage: kvmprof report [OPTIONS]\n"
		"\n"
		"Where the time went, by symbol or by whatever you like.\n"
		"\n"
		"  -i, --input FILE       the profile (default: perf.data)\n"
		"  -s, --sort KEY,...     a row for each combination of these (default:\n"
		"                         " DEFAULT_KEYS "): %s\n"
		"      --order ORDER      rows by children (default) or by self\n"
		"      --no-children      only what functions spent themselves; in that order\n"
		"  -n, --top N            rows to show, 0 for all (default: 40)\n"
		"      --comm NAME,...    count samples of these tasks only\n"
		"      --pid LIST         of these processes: 1,100-199\n"
		"      --tid LIST         of these threads\n"
		"      --cpu LIST         on these vCPUs\n"
		"      --dso NAME,...     show code of these only; percentages stay as they are\n"
		"      --json             one JSON object\n"
		"      --no-demangle      names of C++ and Rust functions as they are\n"
		"      --buildid-dir DIR  perf's build-id cache (default: ~/.debug)\n"
		"For --sort srcline, the kernel's lines:\n" CMD_DEBUGINFO_USAGE
		"  -h, --help             this text\n"
		"\n"
		"Children: the function was in the stack. Self: it was innermost.\n"
		"Samples: how many times it was innermost. Mode: kernel, user, or idle\n"
		"(the vCPU was halted).\n",
		keys);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* Names come out of files: nothing that a terminal would obey. */
static void put_clean(FILE *f, const char *s)
{
	for (; *s; s++)
		putc((unsigned char)*s < 0x20 || *s == 0x7f ? '?' : *s, f);
}

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

/* What stands in a column; buf is for those that have to be made. A file by its last part. */
static const char *cell(const struct agg_key *key, const struct tasks *t, const struct agg_row *r,
			bool whole, char *buf, size_t size)
{
	const char *text = key->format(t, &r->frame, buf, size), *slash;

	if (whole || (strcmp(key->name, "srcline") != 0 &&
		      (strcmp(key->name, "dso") != 0 || text[0] != '/')))
		return text;
	slash = strrchr(text, '/');
	return slash && slash[1] ? slash + 1 : text;
}

static uint64_t span_ns(const struct perfdata *p)
{
	return p->last_ns > p->first_ns ? p->last_ns - p->first_ns : 0;
}

static void print_header(const struct perfdata *p, const struct agg *a, const struct names *n)
{
	printf("# event %s: %" PRIu64, p->event[0] ? p->event : "unknown", a->samples);
	if (a->samples != p->nsamples)
		printf(" of %" PRIu64, p->nsamples);
	printf(" samples over %.3f s", (double)span_ns(p) / 1e9);
	if (p->ncpus)
		printf(" on %u vCPU%s", p->ncpus, p->ncpus == 1 ? "" : "s");
	if (p->osrelease[0])
		printf(", %sLinux %s", p->ours ? "guest " : "", p->osrelease);
	printf("\n# time: %.2f %% idle, %.2f %% kernel, %.2f %% user; ",
	       percent(a->mode_weight[AGG_IDLE], a->weight),
	       percent(a->mode_weight[AGG_KERNEL], a->weight),
	       percent(a->mode_weight[AGG_USER], a->weight));
	if (p->nlost)
		printf("lost %" PRIu64 " samples (%.2f %%)\n", p->nlost,
		       percent(p->nlost, p->nlost + a->samples));
	else
		printf("no samples lost\n");
	if (p->partial)
		printf("# PARTIAL: %s\n", p->message);
	if (!names_have_kernel(n) && a->mode_weight[AGG_KERNEL] + a->mode_weight[AGG_IDLE])
		printf("# no kernel symbols were found for this profile: addresses are shown\n");
}

static bool is_shown(const struct agg_row *r, const struct report_options *opt)
{
	return !opt->no_children || r->self;
}

/* The widest text of each column among the first `shown` rows. */
static void column_widths(const struct agg *a, const struct tasks *t,
			  const struct report_options *opt, size_t shown, int width[AGG_MAX_KEYS])
{
	const struct agg_config *c = &opt->config;
	char buf[CELL_SIZE];

	for (unsigned int k = 0; k < c->nkeys; k++) {
		int header = (int)strlen(c->key[k]->header);

		width[k] = header > c->key[k]->width ? header : c->key[k]->width;
	}
	for (size_t i = 0; i < a->nrows && shown; i++) {
		if (!is_shown(&a->row[i], opt))
			continue;
		shown--;
		for (unsigned int k = 0; k < c->nkeys; k++) {
			size_t len =
				strlen(cell(c->key[k], t, &a->row[i], false, buf, sizeof(buf)));

			if ((int)len > width[k])
				width[k] = len < MAX_WIDTH ? (int)len : MAX_WIDTH;
		}
	}
}

static void put_column(const struct agg_key *key, const char *text, int width, bool last)
{
	int pad = width - (int)strlen(text);

	fputs("  ", stdout);
	if (key->number)
		printf("%*s", pad > 0 ? pad : 0, "");
	put_clean(stdout, text);
	if (!key->number && !last)
		printf("%*s", pad > 0 ? pad : 0, "");
}

static void print_text(const struct perfdata *p, const struct agg *a, const struct names *n,
		       const struct tasks *t, const struct report_options *opt)
{
	const struct agg_config *c = &opt->config;
	size_t rows = 0, shown = 0;
	int width[AGG_MAX_KEYS];
	char buf[CELL_SIZE];

	print_header(p, a, n);
	for (size_t i = 0; i < a->nrows; i++)
		rows += is_shown(&a->row[i], opt);
	shown = opt->top && opt->top < rows ? opt->top : rows;
	column_widths(a, t, opt, shown, width);
	printf("#\n#%s    Samples", opt->no_children ? "   Self" : "Children    Self");
	for (unsigned int k = 0; k < c->nkeys; k++)
		put_column(c->key[k], c->key[k]->header, width[k], k + 1 == c->nkeys);
	putchar('\n');
	for (size_t i = 0, left = shown; i < a->nrows && left; i++) {
		const struct agg_row *r = &a->row[i];

		if (!is_shown(r, opt))
			continue;
		left--;
		if (!opt->no_children)
			printf("%8.2f%%", percent(r->children, a->weight));
		printf("%7.2f%% %10" PRIu64, percent(r->self, a->weight), r->self_samples);
		for (unsigned int k = 0; k < c->nkeys; k++)
			put_column(c->key[k], cell(c->key[k], t, r, false, buf, sizeof(buf)),
				   width[k], k + 1 == c->nkeys);
		putchar('\n');
	}
	if (shown < rows)
		printf("# and %zu more (-n 0 shows all)\n", rows - shown);
}

static void print_json_row(const struct agg_row *r, const struct tasks *t,
			   const struct agg_config *c)
{
	char buf[CELL_SIZE];

	putchar('{');
	for (unsigned int k = 0; k < c->nkeys; k++) {
		const struct agg_key *key = c->key[k];
		const char *text = cell(key, t, r, true, buf, sizeof(buf));

		printf("\"%s\":", key->json);
		if (key->number)
			fputs(text, stdout);
		else
			put_json_string(stdout, text);
		if (!strcmp(key->name, "sym"))
			printf(",\"named\":%s", r->frame.symbol ? "true" : "false");
		putchar(',');
	}
	printf("\"self\":%" PRIu64 ",\"children\":%" PRIu64 ",\"self_samples\":%" PRIu64
	       ",\"children_samples\":%" PRIu64 "}",
	       r->self, r->children, r->self_samples, r->children_samples);
}

static void print_json(const struct perfdata *p, const struct agg *a, const struct tasks *t,
		       const struct report_options *opt)
{
	size_t shown = 0;

	printf("{\"event\":");
	put_json_string(stdout, p->event);
	printf(",\"osrelease\":");
	put_json_string(stdout, p->osrelease);
	printf(",\"vcpus\":%u,\"samples\":%" PRIu64 ",\"weight\":%" PRIu64 ",\"lost\":%" PRIu64
	       ",\"first_ns\":%" PRIu64 ",\"last_ns\":%" PRIu64 ",\"partial\":%s,\"message\":",
	       p->ncpus, a->samples, a->weight, p->nlost, p->first_ns, p->last_ns,
	       p->partial ? "true" : "false");
	put_json_string(stdout, p->message);
	printf(",\"mode_weight\":{\"idle\":%" PRIu64 ",\"kernel\":%" PRIu64 ",\"user\":%" PRIu64
	       "},\n\"symbols\":[",
	       a->mode_weight[AGG_IDLE], a->mode_weight[AGG_KERNEL], a->mode_weight[AGG_USER]);
	for (size_t i = 0; i < a->nrows && (!opt->top || shown < opt->top); i++) {
		if (!is_shown(&a->row[i], opt))
			continue;
		fputs(shown++ ? ",\n" : "\n", stdout);
		print_json_row(&a->row[i], t, &opt->config);
	}
	printf("\n]}\n");
}

static int print_report(const struct perfdata *p, const struct agg *a, const struct names *n,
			const struct tasks *t, const struct report_options *opt, struct err *e)
{
	if (opt->json)
		print_json(p, a, t, opt);
	else
		print_text(p, a, n, t, opt);
	if (fflush(stdout) != 0 || ferror(stdout))
		return err_set(e, EIO, "cannot write to standard output");
	return 0;
}

static bool needs_lines(const struct agg_config *c)
{
	for (unsigned int k = 0; k < c->nkeys; k++)
		if (c->key[k]->need & AGG_NEED_LINE)
			return true;
	return false;
}

static int open_lines(struct srcline **out, struct report_options *opt, const struct perfdata *p,
		      struct err *e)
{
	int ret;

	if (!needs_lines(&opt->config))
		return 0;
	if (isatty(STDERR_FILENO))
		opt->places.progress = cmd_debuginfo_progress;
	ret = srcline_create(out, &opt->places, e);
	if (ret)
		return ret;
	srcline_set_profile(*out, p);
	return cmd_debuginfo_load(*out, e);
}

static int report(struct report_options *opt, struct err *e)
{
	struct display_names display;
	struct srcline *lines = NULL;
	struct perfdata *p = NULL;
	struct names *n = NULL;
	struct tasks *t = tasks_create();
	struct agg *a = NULL;
	struct perfdata_record r;
	int ret = t ? perfdata_open(&p, opt->input, e) : err_set(e, ENOMEM, "out of memory");

	display_names_init(&display, !opt->no_demangle, false);
	if (!ret)
		ret = names_create(&n, p, opt->buildid_dir, e);
	if (!ret)
		ret = open_lines(&lines, opt, p, e);
	if (!ret) {
		opt->config.exact = p->ours;
		opt->config.display = &display;
		opt->config.lines = lines;
		ret = agg_create(&a, &opt->config, n, t, e);
	}
	while (!ret && perfdata_next(p, &r)) {
		if (r.kind == PERFDATA_SAMPLE) {
			ret = agg_add(a, &r, e);
			continue;
		}
		if (lines && r.kind == PERFDATA_MAP)
			srcline_set_map(lines, &r);
		ret = names_record(n, &r, e);
		ret = ret ? ret : tasks_record(t, &r, e);
	}
	if (!ret)
		ret = agg_finish(a, opt->by_self, e);
	if (!ret)
		ret = print_report(p, a, n, t, opt, e);
	agg_destroy(a);
	srcline_destroy(lines);
	display_names_deinit(&display);
	names_destroy(n);
	tasks_destroy(t);
	perfdata_close(p);
	return ret;
}

static bool parse_count(const char *s, unsigned long *out)
{
	char *end;

	if (*s < '0' || *s > '9')
		return false;
	errno = 0;
	*out = strtoul(s, &end, 10);
	return !errno && !*end;
}

/* Comma-separated; the list is cut in place. */
static bool parse_keys(struct agg_config *c, char *list)
{
	char keys[256], *save = NULL;

	agg_key_list(keys, sizeof(keys));
	c->nkeys = 0;
	for (char *s = strtok_r(list, ",", &save); s; s = strtok_r(NULL, ",", &save)) {
		const struct agg_key *key = agg_key_find(s);

		if (!key && (!strcmp(s, "self") || !strcmp(s, "children")))
			fprintf(stderr, "kvmprof report: '%s' is an order: --order %s\n", s, s);
		else if (!key)
			fprintf(stderr, "kvmprof report: cannot sort by '%s': one of %s\n", s,
				keys);
		else if (c->nkeys == AGG_MAX_KEYS)
			fprintf(stderr, "kvmprof report: more than %u keys to sort by\n",
				AGG_MAX_KEYS);
		if (!key || c->nkeys == AGG_MAX_KEYS)
			return false;
		c->key[c->nkeys++] = key;
	}
	if (!c->nkeys)
		fprintf(stderr, "kvmprof report: --sort needs keys: %s\n", keys);
	return c->nkeys;
}

static bool parse_u32(const char **s, uint32_t *out)
{
	char *end;
	unsigned long v;

	if (**s < '0' || **s > '9')
		return false;
	errno = 0;
	v = strtoul(*s, &end, 10);
	*s = end;
	*out = (uint32_t)v;
	return !errno && v <= UINT32_MAX;
}

/* "1,3-5" */
static bool parse_numbers(struct agg_numbers *l, const char *what, const char *text)
{
	const char *s = text;

	l->n = 0;
	for (;;) {
		struct agg_range r;

		if (!parse_u32(&s, &r.from))
			break;
		r.to = r.from;
		if (*s == '-' && (s++, !parse_u32(&s, &r.to)))
			break;
		if (r.to < r.from || l->n == AGG_MAX_RANGES)
			break;
		l->range[l->n++] = r;
		if (!*s)
			return true;
		if (*s++ != ',')
			break;
	}
	fprintf(stderr, "kvmprof report: bad list of %s '%s' (like 0,2-3)\n", what, text);
	return false;
}

static bool parse_texts(struct agg_texts *l, const char *what, char *list)
{
	char *save = NULL;

	l->n = 0;
	for (char *s = strtok_r(list, ",", &save); s && l->n < AGG_MAX_TEXTS;
	     s = strtok_r(NULL, ",", &save))
		l->text[l->n++] = s;
	if (!l->n)
		fprintf(stderr, "kvmprof report: %s needs a name\n", what);
	return l->n;
}

static bool parse_order(struct report_options *opt, const char *order)
{
	opt->by_self = !strcmp(order, "self");
	if (opt->by_self || !strcmp(order, "children"))
		return true;
	fprintf(stderr, "kvmprof report: no such order '%s': children or self\n", order);
	return false;
}

static bool parse_top(struct report_options *opt, const char *text)
{
	if (parse_count(text, &opt->top))
		return true;
	fprintf(stderr, "kvmprof report: bad number of rows '%s'\n", text);
	return false;
}

int cmd_report(int argc, char **argv)
{
	enum {
		OPT_ORDER = 256,
		OPT_NO_CHILDREN,
		OPT_JSON,
		OPT_BUILDID_DIR,
		OPT_COMM,
		OPT_PID,
		OPT_TID,
		OPT_CPU,
		OPT_DSO,
		OPT_NO_DEMANGLE,
	};
	static const struct option long_options[] = {
		{ "input", required_argument, NULL, 'i' },
		{ "top", required_argument, NULL, 'n' },
		{ "sort", required_argument, NULL, 's' },
		{ "order", required_argument, NULL, OPT_ORDER },
		{ "no-children", no_argument, NULL, OPT_NO_CHILDREN },
		{ "json", no_argument, NULL, OPT_JSON },
		{ "comm", required_argument, NULL, OPT_COMM },
		{ "pid", required_argument, NULL, OPT_PID },
		{ "tid", required_argument, NULL, OPT_TID },
		{ "cpu", required_argument, NULL, OPT_CPU },
		{ "dso", required_argument, NULL, OPT_DSO },
		{ "buildid-dir", required_argument, NULL, OPT_BUILDID_DIR },
		{ "no-demangle", no_argument, NULL, OPT_NO_DEMANGLE },
		CMD_DEBUGINFO_OPTIONS,
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct report_options opt = { .input = "perf.data", .top = DEFAULT_ROWS };
	struct agg_config *cfg = &opt.config;
	char default_keys[] = DEFAULT_KEYS;
	struct err e = { 0 };
	bool ok = parse_keys(cfg, default_keys);
	int c;

	optind = 1;
	opterr = 0;
	while (ok && (c = getopt_long(argc, argv, ":i:n:s:h", long_options, NULL)) != -1) {
		switch (c) {
		case 'i':
			opt.input = optarg;
			break;
		case 'n':
			ok = parse_top(&opt, optarg);
			break;
		case 's':
			ok = parse_keys(cfg, optarg);
			break;
		case OPT_ORDER:
			ok = parse_order(&opt, optarg);
			break;
		case OPT_NO_CHILDREN:
			opt.no_children = opt.by_self = true;
			break;
		case OPT_JSON:
			opt.json = true;
			break;
		case OPT_COMM:
			ok = parse_texts(&cfg->comm, "--comm", optarg);
			break;
		case OPT_PID:
			ok = parse_numbers(&cfg->pid, "pids", optarg);
			break;
		case OPT_TID:
			ok = parse_numbers(&cfg->tid, "tids", optarg);
			break;
		case OPT_CPU:
			ok = parse_numbers(&cfg->cpu, "vCPUs", optarg);
			break;
		case OPT_DSO:
			ok = parse_texts(&cfg->dso, "--dso", optarg);
			break;
		case OPT_BUILDID_DIR:
			opt.buildid_dir = opt.places.cache_dir = optarg;
			break;
		case OPT_NO_DEMANGLE:
			opt.no_demangle = true;
			break;
		case OPT_DEBUGINFO:
		case OPT_BUILD_ID_MAP:
			cmd_debuginfo_option(&opt.places, c, optarg);
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			fprintf(stderr, "kvmprof report: %s '%s' (try kvmprof report --help)\n",
				c == ':' ? "missing value for" : "unknown option",
				argv[optind - 1]);
			return 2;
		}
	}
	if (!ok)
		return 2;
	if (optind < argc) {
		fprintf(stderr, "kvmprof report: unexpected argument '%s'\n", argv[optind]);
		return 2;
	}
	if (report(&opt, &e)) {
		fprintf(stderr, "kvmprof: %s\n", e.text);
		return 1;
	}
	return 0;
}

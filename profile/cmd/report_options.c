/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_report_options: the command line of `kvmprof report`.
 */
#include "profile/cmd/report.h"

#include "base/cleanup.h"
#include "profile/cmd/common.h"
#include "profile/cmd/debuginfo.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_ROWS 40u
#define DEFAULT_KEYS "mode,sym,dso"
#define DEFAULT_GRAPH_LIMIT 0.5 /* percent; perf's */

static void usage(FILE *f)
{
	char keys[256];

	agg_key_list(keys, sizeof(keys));
	fprintf(f,
		"Usage: kvmprof report [OPTIONS]\n"
		"\n"
		"Where the time went, by symbol or by whatever you like.\n"
		"\n"
		"  -i, --input FILE       the profile, kvmprof's or perf's (default: perf.data;\n"
		"                         -: standard input)\n"
		"      --event NAME       of several events this one (default: the first)\n"
		"  -s, --sort KEY,...     a row for each combination of these (default:\n"
		"                         " DEFAULT_KEYS "): %s\n"
		"      --order ORDER      rows by children (default) or by self\n"
		"      --no-children      only what functions spent themselves; in that order\n"
		"  -n, --top N            rows to show, 0 for all (default: 40)\n"
		"      --percent-limit P  neither rows nor branches below P %%\n"
		"      --ci               95 %% intervals of the shares: the noise of sampling\n"
		"                         within this run, and nothing else\n"
		"      --images[=WHAT]    samples by image; of WHAT (functions, or an image's\n"
		"                         name) by function in each\n"
		"\n"
		"Callers and callees:\n"
		"  -g, --call-graph HOW   below each row a tree: caller (what it called), callee\n"
		"                         (who called it) or none (default); as in perf a limit\n"
		"                         in percent may come with it: caller,1 (default: 0.5)\n"
		"      --max-stack N      only the N innermost frames of each stack count\n"
		"\n"
		"What to count:\n"
		"      --time FROM,TO     seconds since the first sample, or 10%%,20%% of all the\n"
		"                         time; either may be left out\n"
		"      --phase[=NAME]     samples of this phase of a boot, or from this marker to\n"
		"                         the next; without a name a table of all of them\n"
		"      --comm NAME,...    samples of these tasks only\n"
		"      --pid LIST         of these processes: 1,100-199\n"
		"      --tid LIST         of these threads\n"
		"      --cpu LIST         on these vCPUs\n"
		"  -p, --parent REGEX     stacks with such a function in them\n"
		"      --kernel-only      samples in the kernel, and kernel frames of those\n"
		"      --dso NAME,...     show code of these only; percentages stay as they are\n"
		"      --symbol REGEX     show such functions only (POSIX extended); likewise\n"
		"\n"
		"      --header           above the table what the run counted, and what it cost\n"
		"      --json             one JSON object\n"
		"      --csv              comma-separated values (RFC 4180)\n"
		"      --color WHEN       auto (on a terminal, default), always or never\n"
		"      --no-demangle      names of C++ and Rust functions as they are\n"
		"      --buildid-dir DIR  perf's build-id cache (default: ~/.debug)\n"
		"For --sort srcline, the kernel's lines:\n" CMD_DEBUGINFO_USAGE
		"  -h, --help             this text\n"
		"\n"
		"Children: the function was in the stack. Self: it was innermost.\n"
		"Samples: how many times it was innermost. Mode: kernel, user, or idle\n"
		"(the vCPU was halted). On a terminal the text goes through $PAGER (less).\n",
		keys);
}

#define wrong(...) (fprintf(stderr, "kvmprof report: " __VA_ARGS__), false)

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

/* "1.5" or "10%" up to *s's end or stop; nothing at all leaves it open. */
static bool parse_moment(const char **s, struct report_time *out)
{
	char *end;

	*out = (struct report_time){ 0 };
	if ((**s < '0' || **s > '9') && **s != '.')
		return true;
	errno = 0;
	out->value = strtod(*s, &end);
	out->given = true;
	out->percent = *end == '%';
	*s = end + out->percent;
	return !errno && isfinite(out->value) && (!out->percent || out->value <= 100);
}

/* "FROM,TO"; between percentages also "-", as in perf. */
static bool parse_time(struct report_options *opt, const char *text)
{
	const char *s = text;
	bool ok = parse_moment(&s, &opt->from) && (*s == ',' || (*s == '-' && opt->from.percent));

	if (ok) {
		s++;
		ok = parse_moment(&s, &opt->to) && !*s && (opt->from.given || opt->to.given);
	}
	if (ok && opt->from.given && opt->to.given && opt->from.percent == opt->to.percent)
		ok = opt->from.value <= opt->to.value;
	return ok || wrong("bad time '%s' (like 1.5,3 or 10%%,20%% or 2,)\n", text);
}

static bool parse_percent(const char *what, const char *text, double *out)
{
	char *end;

	errno = 0;
	*out = strtod(text, &end);
	end += *end == '%';
	return (!errno && end != text && !*end && *out >= 0 && *out <= 100) ||
	       wrong("bad %s '%s': a percentage is needed\n", what, text);
}

/* perf's words; those of layouts that we do not have are refused. */
static bool parse_graph(struct report_options *opt, char *list)
{
	char *save = NULL;

	opt->graph = REPORT_CALLER;
	for (char *s = strtok_r(list, ",", &save); s; s = strtok_r(NULL, ",", &save)) {
		if (!strcmp(s, "caller"))
			opt->graph = REPORT_CALLER;
		else if (!strcmp(s, "callee"))
			opt->graph = REPORT_CALLEE;
		else if (!strcmp(s, "none"))
			opt->graph = REPORT_NO_GRAPH;
		else if (!strcmp(s, "graph") || !strcmp(s, "function") || !strcmp(s, "percent"))
			; /* what it is anyway */
		else if ((*s < '0' || *s > '9') ||
			 !parse_percent("limit of the call graph", s, &opt->graph_limit))
			return wrong("bad call graph '%s': caller, callee or none, and a limit in "
				     "percent\n",
				     s);
	}
	return true;
}

static bool parse_regex(regex_t *re, const regex_t **used, const char *what, const char *text)
{
	char message[128];
	int err;

	if (*used)
		regfree(re);
	*used = NULL;
	err = regcomp(re, text, REG_EXTENDED | REG_NOSUB);
	if (!err) {
		*used = re;
		return true;
	}
	regerror(err, re, message, sizeof(message));
	return wrong("bad expression for %s '%s': %s\n", what, text, message);
}

static bool parse_color(struct report_options *opt, const char *when)
{
	static const char *const word[] = { "auto", "always", "never" };

	for (unsigned int i = 0; i < ARRAY_SIZE(word); i++) {
		if (!strcmp(when, word[i])) {
			opt->when_color = (enum report_color)i;
			return true;
		}
	}
	return wrong("bad --color '%s': auto, always or never\n", when);
}

static bool parse_images(struct report_options *opt, char *what)
{
	opt->images = true;
	opt->functions = what;
	return !what || !strcmp(what, "functions") ||
	       parse_texts(&opt->config.dso, "--images", what);
}

static bool parse_depth(struct report_options *opt, const char *text)
{
	unsigned long n;

	if (!parse_count(text, &n) || !n || n > PERFDATA_MAX_FRAMES)
		return wrong("bad --max-stack '%s': 1 to %u frames\n", text, PERFDATA_MAX_FRAMES);
	opt->config.max_stack = (uint32_t)n;
	return true;
}

enum {
	OPT_ORDER = 256,
	OPT_NO_CHILDREN,
	OPT_JSON,
	OPT_CSV,
	OPT_CI,
	OPT_EVENT,
	OPT_IMAGES,
	OPT_COLOR,
	OPT_HEADER,
	OPT_PERCENT_LIMIT,
	OPT_MAX_STACK,
	OPT_TIME,
	OPT_PHASE,
	OPT_SYMBOL,
	OPT_KERNEL_ONLY,
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
	{ "event", required_argument, NULL, OPT_EVENT },
	{ "top", required_argument, NULL, 'n' },
	{ "sort", required_argument, NULL, 's' },
	{ "order", required_argument, NULL, OPT_ORDER },
	{ "no-children", no_argument, NULL, OPT_NO_CHILDREN },
	{ "percent-limit", required_argument, NULL, OPT_PERCENT_LIMIT },
	{ "ci", no_argument, NULL, OPT_CI },
	{ "images", optional_argument, NULL, OPT_IMAGES },
	{ "call-graph", required_argument, NULL, 'g' },
	{ "max-stack", required_argument, NULL, OPT_MAX_STACK },
	{ "time", required_argument, NULL, OPT_TIME },
	{ "phase", optional_argument, NULL, OPT_PHASE },
	{ "comm", required_argument, NULL, OPT_COMM },
	{ "pid", required_argument, NULL, OPT_PID },
	{ "tid", required_argument, NULL, OPT_TID },
	{ "cpu", required_argument, NULL, OPT_CPU },
	{ "parent", required_argument, NULL, 'p' },
	{ "kernel-only", no_argument, NULL, OPT_KERNEL_ONLY },
	{ "dso", required_argument, NULL, OPT_DSO },
	{ "symbol", required_argument, NULL, OPT_SYMBOL },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "csv", no_argument, NULL, OPT_CSV },
	{ "header", no_argument, NULL, OPT_HEADER },
	{ "color", required_argument, NULL, OPT_COLOR },
	{ "buildid-dir", required_argument, NULL, OPT_BUILDID_DIR },
	{ "no-demangle", no_argument, NULL, OPT_NO_DEMANGLE },
	CMD_DEBUGINFO_OPTIONS,
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

/* Options that choose samples and frames. */
static bool take_filter(struct report_options *opt, int c, char *arg)
{
	struct agg_config *cfg = &opt->config;

	switch (c) {
	case OPT_TIME:
		return parse_time(opt, arg);
	case OPT_PHASE:
		opt->phases = !arg;
		opt->phase = arg;
		return true;
	case OPT_COMM:
		return parse_texts(&cfg->comm, "--comm", arg);
	case OPT_PID:
		return parse_numbers(&cfg->pid, "pids", arg);
	case OPT_TID:
		return parse_numbers(&cfg->tid, "tids", arg);
	case OPT_CPU:
		return parse_numbers(&cfg->cpu, "vCPUs", arg);
	case 'p':
		return parse_regex(&opt->parent, &cfg->parent, "--parent", arg);
	case OPT_DSO:
		return parse_texts(&cfg->dso, "--dso", arg);
	case OPT_SYMBOL:
		return parse_regex(&opt->symbol, &cfg->symbol, "--symbol", arg);
	case OPT_MAX_STACK:
		return parse_depth(opt, arg);
	default: /* OPT_KERNEL_ONLY */
		cfg->kernel_only = true;
		return true;
	}
}

/* Options that say how it looks. */
static bool take_look(struct report_options *opt, int c, char *arg)
{
	switch (c) {
	case 'n':
		return parse_top(opt, arg);
	case 's':
		return parse_keys(&opt->config, arg);
	case OPT_ORDER:
		return parse_order(opt, arg);
	case OPT_NO_CHILDREN:
		opt->no_children = opt->by_self = true;
		return true;
	case OPT_PERCENT_LIMIT:
		if (!parse_percent("--percent-limit", arg, &opt->row_limit))
			return false;
		opt->graph_limit = opt->row_limit;
		return true;
	case OPT_CI:
		opt->ci = true;
		return true;
	case OPT_IMAGES:
		return parse_images(opt, arg);
	case 'g':
		return parse_graph(opt, arg);
	case OPT_JSON:
		opt->format = REPORT_JSON;
		return true;
	case OPT_CSV:
		opt->format = REPORT_CSV;
		return true;
	case OPT_HEADER:
		opt->header = true;
		return true;
	default: /* OPT_COLOR */
		return parse_color(opt, arg);
	}
}

static bool take(struct report_options *opt, int c, char *arg)
{
	switch (c) {
	case 'i':
		opt->input = arg;
		return true;
	case OPT_EVENT:
		opt->event = arg;
		return true;
	case OPT_BUILDID_DIR:
		opt->buildid_dir = opt->places.cache_dir = arg;
		return true;
	case OPT_NO_DEMANGLE:
		opt->no_demangle = true;
		return true;
	case OPT_DEBUGINFO:
	case OPT_BUILD_ID_MAP:
		cmd_debuginfo_option(&opt->places, c, arg);
		return true;
	case OPT_TIME:
	case OPT_PHASE:
	case OPT_COMM:
	case OPT_PID:
	case OPT_TID:
	case OPT_CPU:
	case 'p':
	case OPT_DSO:
	case OPT_SYMBOL:
	case OPT_MAX_STACK:
	case OPT_KERNEL_ONLY:
		return take_filter(opt, c, arg);
	default:
		return take_look(opt, c, arg);
	}
}

/* What does not go together. An image is a row, or its functions are. */
static bool settle(struct report_options *opt, bool sorted)
{
	static char by_image[] = "dso", by_function[] = "dso,sym";

	if (opt->header && opt->format != REPORT_TEXT)
		return wrong("--header stands above the table: drop %s\n",
			     opt->format == REPORT_JSON ? "--json" : "--csv");
	if (!opt->images)
		return true;
	if (sorted || opt->graph)
		return wrong("--images has rows of its own: drop %s\n", sorted ? "--sort" : "-g");
	opt->no_children = opt->by_self = true;
	return parse_keys(&opt->config, opt->functions ? by_function : by_image);
}

int report_options_parse(struct report_options *opt, int argc, char **argv)
{
	char default_keys[] = DEFAULT_KEYS, default_graph[] = "caller";
	bool ok, sorted = false;
	int c;

	*opt = (struct report_options){
		.input = "perf.data",
		.top = DEFAULT_ROWS,
		.graph_limit = DEFAULT_GRAPH_LIMIT,
	};
	ok = parse_keys(&opt->config, default_keys);
	optind = 1;
	opterr = 0;
	while (ok && (c = getopt_long(argc, argv, ":i:n:s:g:p:h", long_options, NULL)) != -1) {
		if (c == 'h') {
			usage(stdout);
			return 0;
		}
		/* As in perf -g may stand alone, at the end or before another option. */
		if (c == 'g' && optarg == argv[optind - 1] && *optarg == '-') {
			optind--;
			optarg = default_graph;
		} else if (c == ':' && optopt == 'g') {
			c = 'g';
			optarg = default_graph;
		}
		if (c == ':' || c == '?')
			return cmd_wrong_option(argv, c);
		/* Its name may stand alone, too: nothing else does in a report. */
		if (c == OPT_PHASE && !optarg && optind < argc && *argv[optind] != '-')
			optarg = argv[optind++];
		sorted |= c == 's';
		ok = take(opt, c, optarg);
	}
	if (ok && optind < argc)
		ok = wrong("unexpected argument '%s'\n", argv[optind]);
	if (ok && opt->phase && (opt->from.given || opt->to.given))
		ok = wrong("--phase and --time both say when: drop one\n");
	if (ok && opt->phases && opt->format == REPORT_CSV)
		ok = wrong("the table of phases is text or --json\n");
	return ok && settle(opt, sorted) ? -1 : 2;
}

void report_options_deinit(struct report_options *opt)
{
	if (opt->config.symbol)
		regfree(&opt->symbol);
	if (opt->config.parent)
		regfree(&opt->parent);
	opt->config.symbol = opt->config.parent = NULL;
}

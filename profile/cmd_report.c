/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd.h"

#include "profile/agg.h"
#include "profile/names.h"
#include "profile/perfdata_read.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_ROWS 40u

struct report_options {
	const char *input, *buildid_dir;
	unsigned long top;
	bool by_self, no_children, json;
};

static void usage(FILE *f)
{
	fputs("Usage: kvmprof report [OPTIONS]\n"
	      "\n"
	      "Where the time went, by symbol.\n"
	      "\n"
	      "  -i, --input FILE       the profile (default: perf.data)\n"
	      "  -n, --top N            rows to show, 0 for all (default: 40)\n"
	      "      --sort ORDER       children (default) or self\n"
	      "      --no-children      only what functions spent themselves; sorts by self\n"
	      "      --json             one JSON object\n"
	      "      --buildid-dir DIR  perf's build-id cache (default: ~/.debug)\n"
	      "  -h, --help             this text\n"
	      "\n"
	      "Children: the function was in the stack. Self: it was innermost.\n"
	      "Samples: how many times it was innermost. Mode: kernel, user, or idle\n"
	      "(the vCPU was halted).\n",
	      f);
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

static void row_name(const struct agg_row *r, char *hex, size_t size, const char **name)
{
	snprintf(hex, size, "0x%016" PRIx64, r->addr);
	*name = r->symbol ? r->symbol->name : hex;
}

static uint64_t span_ns(const struct perfdata *p)
{
	return p->last_ns > p->first_ns ? p->last_ns - p->first_ns : 0;
}

static void print_header(const struct perfdata *p, const struct agg *a, const struct names *n)
{
	printf("# event %s: %" PRIu64 " samples over %.3f s", p->event[0] ? p->event : "unknown",
	       a->samples, (double)span_ns(p) / 1e9);
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

static void print_text(const struct perfdata *p, const struct agg *a, const struct names *n,
		       const struct report_options *opt)
{
	size_t rows = 0, shown = 0;
	int width = 24;

	print_header(p, a, n);
	for (size_t i = 0; i < a->nrows; i++)
		rows += !opt->no_children || a->row[i].self;
	shown = opt->top && opt->top < rows ? opt->top : rows;
	for (size_t i = 0, left = shown; i < a->nrows && left; i++) {
		int len = a->row[i].symbol ? (int)strlen(a->row[i].symbol->name) : 18;

		if (opt->no_children && !a->row[i].self)
			continue;
		left--;
		if (len > width)
			width = len < 48 ? len : 48;
	}
	printf("#\n#%s    Samples  Mode    %-*s  DSO\n",
	       opt->no_children ? "   Self" : "Children    Self", width, "Symbol");
	for (size_t i = 0, left = shown; i < a->nrows && left; i++) {
		const struct agg_row *r = &a->row[i];
		char hex[24];
		const char *name;
		int pad;

		if (opt->no_children && !r->self)
			continue;
		left--;
		row_name(r, hex, sizeof(hex), &name);
		if (!opt->no_children)
			printf("%8.2f%%", percent(r->children, a->weight));
		printf("%7.2f%% %10" PRIu64 "  %-6s  ", percent(r->self, a->weight),
		       r->self_samples, agg_mode_name(r->mode));
		put_clean(stdout, name);
		pad = width - (int)strlen(name);
		printf("%*s  ", pad > 0 ? pad : 0, "");
		put_clean(stdout, r->dso);
		putchar('\n');
	}
	if (shown < rows)
		printf("# and %zu more (-n 0 shows all)\n", rows - shown);
}

static void print_json(const struct perfdata *p, const struct agg *a,
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
		const struct agg_row *r = &a->row[i];
		char hex[24];
		const char *name;

		if (opt->no_children && !r->self)
			continue;
		row_name(r, hex, sizeof(hex), &name);
		printf("%s\n{\"symbol\":", shown++ ? "," : "");
		put_json_string(stdout, name);
		printf(",\"dso\":");
		put_json_string(stdout, r->dso);
		printf(",\"mode\":\"%s\",\"named\":%s,\"self\":%" PRIu64 ",\"children\":%" PRIu64
		       ",\"self_samples\":%" PRIu64 ",\"children_samples\":%" PRIu64 "}",
		       agg_mode_name(r->mode), r->symbol ? "true" : "false", r->self, r->children,
		       r->self_samples, r->children_samples);
	}
	printf("\n]}\n");
}

static int report(const struct report_options *opt, struct err *e)
{
	struct perfdata *p = NULL;
	struct names *n = NULL;
	struct agg *a = NULL;
	struct perfdata_record r;
	int ret = perfdata_open(&p, opt->input, e);

	if (!ret)
		ret = names_create(&n, p, opt->buildid_dir, e);
	if (!ret)
		ret = agg_create(&a, p->ours, e);
	while (!ret && perfdata_next(p, &r)) {
		if (r.kind == PERFDATA_MAP)
			ret = names_map(n, &r, e);
		else if (r.kind == PERFDATA_SAMPLE)
			ret = agg_add(a, &r, e);
	}
	if (!ret)
		ret = agg_finish(a, n, opt->by_self, e);
	if (!ret) {
		if (opt->json)
			print_json(p, a, opt);
		else
			print_text(p, a, n, opt);
		if (fflush(stdout) != 0 || ferror(stdout))
			ret = err_set(e, EIO, "cannot write to standard output");
	}
	agg_destroy(a);
	names_destroy(n);
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

int cmd_report(int argc, char **argv)
{
	enum { OPT_SORT = 256, OPT_NO_CHILDREN, OPT_JSON, OPT_BUILDID_DIR };
	static const struct option long_options[] = {
		{ "input", required_argument, NULL, 'i' },
		{ "top", required_argument, NULL, 'n' },
		{ "sort", required_argument, NULL, OPT_SORT },
		{ "no-children", no_argument, NULL, OPT_NO_CHILDREN },
		{ "json", no_argument, NULL, OPT_JSON },
		{ "buildid-dir", required_argument, NULL, OPT_BUILDID_DIR },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct report_options opt = { .input = "perf.data", .top = DEFAULT_ROWS };
	struct err e = { 0 };
	int c;

	optind = 1;
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":i:n:h", long_options, NULL)) != -1) {
		switch (c) {
		case 'i':
			opt.input = optarg;
			break;
		case 'n':
			if (!parse_count(optarg, &opt.top)) {
				fprintf(stderr, "kvmprof report: bad number of rows '%s'\n",
					optarg);
				return 2;
			}
			break;
		case OPT_SORT:
			if (strcmp(optarg, "self") && strcmp(optarg, "children")) {
				fprintf(stderr,
					"kvmprof report: cannot sort by '%s': self or children\n",
					optarg);
				return 2;
			}
			opt.by_self = !strcmp(optarg, "self");
			break;
		case OPT_NO_CHILDREN:
			opt.no_children = opt.by_self = true;
			break;
		case OPT_JSON:
			opt.json = true;
			break;
		case OPT_BUILDID_DIR:
			opt.buildid_dir = optarg;
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

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_report: `kvmprof report`: where the time went.
 */
#include "profile/cmd/report.h"

#include "profile/cmd/cmd.h"
#include "profile/cmd/debuginfo.h"
#include "profile/cmd/pager.h"
#include "profile/stacks/slices.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

double report_percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

struct share_interval report_interval(const struct report *r, uint64_t weight)
{
	double whole = (double)r->a->weight, n = share_effective(whole, r->a->weight_squares);
	struct share_interval i = share_wilson95(whole > 0 ? (double)weight / whole : 0, n);

	return (struct share_interval){ 100 * i.low, 100 * i.high };
}

bool report_shows(const struct report *r, const struct agg_row *row)
{
	uint64_t weight = r->opt->no_children ? row->self : row->children;

	return (!r->opt->no_children || row->self) &&
	       report_percent(weight, r->a->weight) >= r->opt->row_limit;
}

static int print_report(const struct report *r, struct err *e)
{
	struct pager pager = { 0 };
	int ret = 0;

	if (r->opt->format == REPORT_TEXT)
		pager_start(&pager);
	if (r->opt->header && r->opt->format == REPORT_TEXT)
		report_run_header(r);
	if (r->opt->format == REPORT_JSON)
		ret = report_json(r);
	else if (r->opt->format == REPORT_CSV)
		report_csv(r);
	else if (r->opt->images)
		ret = report_images(r);
	else
		ret = report_text(r);
	if (ret)
		err_set(e, ENOMEM, "out of memory");
	else if (!pager.pid && (fflush(stdout) != 0 || ferror(stdout)))
		ret = err_set(e, EIO, "cannot write to standard output");
	pager_finish(&pager);
	return ret;
}

/* A key of which the profile knows nothing would make a column of made-up nothings. */
static int check_keys(const struct report_options *opt, const struct perfdata *p, struct err *e)
{
	for (unsigned int k = 0; k < opt->config.nkeys; k++) {
		const struct agg_key *key = opt->config.key[k];
		bool code = key->need & AGG_NEED_CODE_PAGE, data = key->need & AGG_NEED_DATA_PAGE;

		if ((code && !p->has_code_page) || (data && !p->has_data_page))
			return err_set(e, ENOTSUP,
				       "%s: its samples do not say %s: cannot sort by %s",
				       opt->input,
				       code ? "in which size of page their code lies"
					    : "in which size of page their data lies",
				       key->name);
	}
	return 0;
}

/* One end of the time that counts; the samples' first and last for what was left open. */
static uint64_t time_of(const struct report_time *t, const struct perfdata *p, uint64_t open)
{
	double span = (double)(p->last_ns - p->first_ns), ns;

	if (!t->given)
		return open;
	ns = t->percent ? t->value / 100 * span : t->value * 1e9;
	return ns >= (double)(UINT64_MAX - p->first_ns) / 2 ? UINT64_MAX
							    : p->first_ns + (uint64_t)llround(ns);
}

static void set_times(struct report_options *opt, const struct perfdata *p)
{
	if (!opt->from.given && !opt->to.given)
		return;
	opt->config.from_ns = time_of(&opt->from, p, 0);
	opt->config.to_ns = time_of(&opt->to, p, UINT64_MAX);
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

static int read_records(struct perfdata *p, struct agg *a, struct names *n, struct tasks *t,
			struct srcline *lines, struct err *e)
{
	struct perfdata_record r;
	int ret = 0;

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
	return ret;
}

static int report(struct report_options *opt, struct err *e)
{
	struct display_names display;
	struct srcline *lines = NULL;
	struct perfdata *p = NULL;
	struct names *n = NULL;
	struct tasks *t = tasks_create();
	struct agg *a = NULL;
	int ret = t ? perfdata_open_event(&p, opt->input, opt->event, e)
		    : err_set(e, ENOMEM, "out of memory");

	display_names_init(&display, !opt->no_demangle, false);
	ret = ret ? ret : check_keys(opt, p, e);
	if (!ret && opt->phase)
		ret = slices_set_window(p, opt->input, opt->buildid_dir, opt->phase, e);
	ret = ret ? ret : names_create(&n, p, opt->buildid_dir, e);
	ret = ret ? ret : open_lines(&lines, opt, p, e);
	if (!ret) {
		set_times(opt, p);
		opt->config.exact = p->ours;
		opt->config.display = &display;
		opt->config.lines = lines;
		opt->config.keep_stacks = opt->graph != REPORT_NO_GRAPH;
		ret = agg_create(&a, &opt->config, n, t, e);
	}
	ret = ret ? ret : read_records(p, a, n, t, lines, e);
	ret = ret ? ret : agg_finish(a, opt->by_self, e);
	if (!ret) {
		const struct report r = { .opt = opt, .p = p, .a = a, .n = n, .t = t };

		ret = print_report(&r, e);
	}
	agg_destroy(a);
	srcline_destroy(lines);
	display_names_deinit(&display);
	names_destroy(n);
	tasks_destroy(t);
	perfdata_close(p);
	return ret;
}

int cmd_report(int argc, char **argv)
{
	static struct report_options opt; /* large lists */
	struct err e = { 0 };
	int status = report_options_parse(&opt, argc, argv);

	if (status < 0) {
		opt.color = opt.when_color == REPORT_COLOR_ALWAYS ||
			    (opt.when_color == REPORT_COLOR_AUTO && pager_wants_color());
		status = 0;
		if (opt.phases ? report_phases(&opt, &e) : report(&opt, &e)) {
			fprintf(stderr, "kvmprof: %s\n", e.text);
			status = 1;
		}
	}
	report_options_deinit(&opt);
	return status;
}

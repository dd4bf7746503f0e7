/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_report: `kvmprof report`: where the time went.
 */
#include "profile/cmd/cmd.h"

#include "profile/analyse/stacks/slices.h"
#include "profile/cmd/common.h"
#include "profile/cmd/pager.h"
#include "profile/cmd/report/data.h"
#include "profile/cmd/report/header.h"
#include "profile/cmd/report/images.h"
#include "profile/cmd/report/phases.h"
#include "profile/cmd/report/text.h"
#include "profile/cmd/report_options.h"
#include "profile/format/perfdata/leftover.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

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
		err_nomem(e);
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

static bool needs_lines(const struct agg_config *c)
{
	for (unsigned int k = 0; k < c->nkeys; k++)
		if (c->key[k]->need & AGG_NEED_LINE)
			return true;
	return false;
}

static int add_samples(struct agg *a, struct reader *in, struct err *e)
{
	struct perfdata_record r;
	int ret;

	while ((ret = reader_next(in, &r, e)) > 0) {
		ret = r.kind == PERFDATA_SAMPLE ? agg_add(a, &r, e) : 0;
		if (ret)
			break;
	}
	return ret;
}

static int report(struct report_options *opt, struct err *e)
{
	struct display_names display;
	const struct reader_options from = { .input = opt->input,
					     .event = opt->event,
					     .epoch = opt->epoch,
					     .buildid_dir = opt->buildid_dir };
	struct selection_window window;
	struct reader in;
	struct agg *a = NULL;
	int ret = reader_open(&in, &from, e);

	demangle_names_init(&display, opt->no_demangle ? DEMANGLE_NONE : DEMANGLE_PROGRAMS);
	ret = ret ? ret : check_keys(opt, in.p, e);
	if (!ret)
		ret = selection_set_window(&opt->selection, in.p, opt->input, opt->buildid_dir,
					   &window, e);
	if (!ret && needs_lines(&opt->config))
		ret = cmd_debuginfo_open(&in.lines, &opt->places, in.p, e);
	if (!ret) {
		opt->config.exact = in.p->ours;
		opt->config.display = &display;
		opt->config.lines = in.lines;
		opt->config.keep_stacks = opt->graph != REPORT_NO_GRAPH;
		ret = agg_create(&a, &opt->config, in.names, in.tasks, e);
	}
	ret = ret ? ret : add_samples(a, &in, e);
	ret = ret ? ret : agg_finish(a, opt->by_self ? AGG_BY_SELF : AGG_BY_CHILDREN, e);
	if (!ret) {
		const struct report r = {
			.opt = opt, .p = in.p, .a = a, .n = in.names, .t = in.tasks
		};

		ret = print_report(&r, e);
		ret = ret ? ret : reader_need_samples(&in, opt->input, e);
	}
	agg_destroy(a);
	srcline_destroy(in.lines);
	demangle_names_deinit(&display);
	reader_close(&in);
	return ret;
}

static int report_phases(const struct report_options *opt, struct err *e)
{
	struct pager pager = { 0 };
	struct slices all = { 0 };
	int ret = slices_load(&all, opt->input, opt->buildid_dir, e);

	if (ret)
		return ret;
	if (opt->format == REPORT_JSON) {
		ret = report_phases_json(&all) ? err_nomem(e) : 0;
	} else {
		pager_start(&pager);
		report_phases_text(&all, opt->top);
	}
	pager_finish(&pager);
	slices_deinit(&all);
	return ret;
}

int cmd_report(int argc, char **argv)
{
	static struct report_options opt; /* large lists */
	struct err e = { 0 };
	char left[1024];
	int status = report_options_parse(&opt, argc, argv);

	if (status < 0) {
		opt.color = opt.when_color == REPORT_COLOR_ALWAYS ||
			    (opt.when_color == REPORT_COLOR_AUTO && pager_wants_color());
		status = 0;
		if (leftover_text(opt.input, left, sizeof(left)))
			fprintf(stderr, "kvmprof: note: %s\n", left);
		if (opt.selection.phases ? report_phases(&opt, &e) : report(&opt, &e)) {
			fprintf(stderr, "kvmprof: %s\n", e.text);
			status = 1;
		}
	}
	report_options_deinit(&opt);
	return status;
}

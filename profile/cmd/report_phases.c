/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_report_phases: `kvmprof report --phase`: a run's time, cut into slices.
 */
#include "profile/cmd/report.h"

#include "base/json.h"
#include "profile/cmd/pager.h"
#include "profile/analyse/stacks/slices.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static double seconds(const struct slices *all, uint64_t ns)
{
	/* Of what is not time the first sample's span begins 1 ns before it. */
	return ns + 1 >= all->first_ns ? (double)(ns > all->first_ns ? ns - all->first_ns : 0) / 1e9
				       : -(double)(all->first_ns - ns) / 1e9;
}

static const char *kind(const struct slice *s)
{
	return s->phase ? "phase" : marker_kind_name(s->kind);
}

static void print_text(const struct slices *all, const struct report_options *opt)
{
	size_t left = opt->top ? opt->top : all->n;

	if (!all->n) {
		printf("The profile has neither markers nor the phases of a boot.\n");
		return;
	}
	printf("Seconds since the first sample. Shares are of the whole profile.\n\n");
	printf("%11s %11s %11s %9s %7s  %-10s  %s\n", "from", "to", "duration", "samples", "share",
	       "kind", "name");
	for (size_t i = 0; i < all->n && left; i++, left--) {
		const struct slice *s = &all->slice[i];

		printf("%11.6f %11.6f %11.6f %9" PRIu64 " %6.2f%%  %-10s  ",
		       seconds(all, s->from_ns), seconds(all, s->to_ns),
		       (double)(s->to_ns - s->from_ns) / 1e9, s->samples,
		       report_percent(s->weight, all->weight), kind(s));
		report_put_clean(s->name);
		if (s->nth > 1)
			printf("#%u", s->nth);
		putchar('\n');
	}
	if (opt->top && all->n > opt->top)
		printf("%zu more: -n 0 shows all\n", all->n - opt->top);
	printf("\nkvmprof report --phase NAME shows where the time of one of them went.\n");
}

static void print_json(const struct slices *all)
{
	printf("{\"samples\":%" PRIu64 ",\"weight\":%" PRIu64 ",\"first_ns\":%" PRIu64
	       ",\"phases\":[",
	       all->samples, all->weight, all->first_ns);
	for (size_t i = 0; i < all->n; i++) {
		const struct slice *s = &all->slice[i];

		printf("%s{\"name\":", i ? "," : "");
		json_quote_file(stdout, s->name);
		printf(",\"nth\":%u,\"kind\":\"%s\",\"from_s\":%.9f,\"to_s\":%.9f,\"samples\":"
		       "%" PRIu64 ",\"weight\":%" PRIu64 ",\"percent\":%.4f}",
		       s->nth, kind(s), seconds(all, s->from_ns), seconds(all, s->to_ns),
		       s->samples, s->weight, report_percent(s->weight, all->weight));
	}
	printf("]}\n");
}

int report_phases(const struct report_options *opt, struct err *e)
{
	struct pager pager = { 0 };
	struct slices all = { 0 };
	int ret = slices_load(&all, opt->input, opt->buildid_dir, e);

	if (ret)
		return ret;
	if (opt->format == REPORT_JSON) {
		print_json(&all);
	} else {
		pager_start(&pager);
		print_text(&all, opt);
	}
	pager_finish(&pager);
	slices_deinit(&all);
	return ret;
}

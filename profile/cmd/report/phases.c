/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/report/phases.h"

#include "base/json.h"
#include "base/utf8.h"
#include "profile/cmd/report/row.h"

#include <inttypes.h>
#include <stdio.h>

static double seconds(const struct slices *all, uint64_t ns)
{
	/* Where the event is not time, the first sample's span begins 1 ns before the sample. */
	return ns + 1 >= all->first_ns ? (double)(ns > all->first_ns ? ns - all->first_ns : 0) / 1e9
				       : -(double)(all->first_ns - ns) / 1e9;
}

static const char *kind(const struct slice *s)
{
	return s->phase ? "phase" : markers_kind_name(s->kind);
}

void report_phases_text(const struct slices *all, unsigned long top)
{
	size_t left = top ? top : all->n;

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
		utf8_put(stdout, s->name);
		if (s->nth > 1)
			printf("#%u", s->nth);
		putchar('\n');
	}
	if (top && all->n > top)
		printf("%zu more: -n 0 shows all\n", all->n - top);
	printf("\nkvmprof report --phase NAME shows where the time of one of them went.\n");
}

int report_phases_json(const struct slices *all)
{
	struct json_writer w;

	json_open(&w);
	json_put(&w, "samples", all->samples, "weight", all->weight, "first_ns", all->first_ns);
	json_array_begin(&w, "phases");
	for (size_t i = 0; i < all->n; i++) {
		const struct slice *s = &all->slice[i];

		json_put_object(&w, NULL, "name", s->name, "nth", s->nth, "kind", kind(s), "from_s",
				json_fixed(9, seconds(all, s->from_ns)), "to_s",
				json_fixed(9, seconds(all, s->to_ns)), "samples", s->samples,
				"weight", s->weight, "percent",
				json_fixed(4, report_percent(s->weight, all->weight)));
	}
	json_array_end(&w);
	return json_close(&w, stdout);
}

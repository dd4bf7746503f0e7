/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_report_header: where a profile is from, and what the run said of itself.
 */
#include "profile/cmd/report.h"

#include "base/cleanup.h"
#include "profile/record/summary/summary.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a file: nothing that a terminal would obey. */
static void put_clean(const char *s)
{
	for (; *s; s++)
		putchar(*s >= ' ' && *s <= '~' ? *s : '?');
}

/* A double gives back the digits of a text that had no more than these. */
#define REAL_DIGITS 15

static void put_totals(json_t *totals)
{
	const size_t form = JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(REAL_DIGITS);
	const char *key;
	json_t *value;

	json_object_foreach(totals, key, value)
	{
		cleanup_free char *text = json_dumps(value, form);

		fputs("# ", stdout);
		put_clean(key);
		fputs(": ", stdout);
		put_clean(text ? text : "?");
		putchar('\n');
	}
}

/* As summary_exact_json() writes it. */
void report_engine(const struct report *r)
{
	json_t *totals = r->p->ours ? perfdata_totals(r->p) : NULL;
	const char *qemu;
	json_int_t period, instructions;
	double seconds;

	if (totals &&
	    !json_unpack(totals, "{s:F,s:{s:s,s:I,s:I}}", "run_seconds", &seconds, "engine", "qemu",
			 &qemu, "period", &period, "instructions", &instructions)) {
		printf("# engine exact: QEMU ");
		for (; *qemu && *qemu != ' '; qemu++)
			putchar(*qemu > ' ' && *qemu <= '~' ? *qemu : '?');
		printf(", %" JSON_INTEGER_FORMAT " instructions in %.3f s of virtual time, ",
		       instructions, seconds);
		if (r->p->counted)
			puts("each counted");
		else
			printf("a sample each %" JSON_INTEGER_FORMAT "\n", period);
	}
	json_decref(totals);
}

void report_missed(const struct report *r)
{
	json_t *totals = r->p->ours ? perfdata_totals(r->p) : NULL;
	double share = json_number_value(json_object_get(totals, "missed_share"));

	json_decref(totals);
	if (share > SUMMARY_MISSED_MUCH && share < 1)
		printf("# WARNING: %.0f %% of the timer's periods were missed when this was "
		       "recorded: shares rest on few samples (--ci shows how uncertain they are)\n",
		       100 * share);
}

void report_left_out(const struct report *r)
{
	uint64_t n = names_left_out(r->n);

	if (n)
		printf("# %" PRIu64 " mappings of programs are left out, as there are too many: "
		       "addresses there have no names\n",
		       n);
}

void report_run_header(const struct report *r)
{
	const struct perfdata *p = r->p;
	json_t *totals = perfdata_totals(p);

	fputs("# profile of ", stdout);
	report_put_clean(*p->hostname			     ? p->hostname
			 : json_object_get(totals, "engine") ? "an emulated machine"
							     : "an unknown host");
	printf(", %u CPU%s\n", p->ncpus, p->ncpus == 1 ? "" : "s");
	if (!p->json)
		fputs("# it carries no counters of the run\n", stdout);
	else if (!totals)
		fputs("# the counters of the run are damaged\n", stdout);
	put_totals(totals);
	json_decref(totals);
	puts("#");
}

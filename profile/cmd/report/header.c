/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/report/header.h"

#include "base/cleanup.h"
#include "base/utf8.h"
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

/* As summary_engine() writes it. */
static void print_engine(const struct report *r)
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

static void print_missed(const struct report *r)
{
	json_t *totals = r->p->ours ? perfdata_totals(r->p) : NULL;
	double share = json_number_value(json_object_get(totals, "missed_share"));

	json_decref(totals);
	if (share > SUMMARY_MISSED_MUCH && share < 1)
		printf("# WARNING: %.0f %% of the timer's periods were missed when this was "
		       "recorded: shares rest on few samples (--ci shows how uncertain they are)\n",
		       100 * share);
}

static void print_left_out(const struct report *r)
{
	uint64_t n = names_left_out(r->n);

	if (n)
		printf("# %" PRIu64 " mappings of programs are left out, as there are too many: "
		       "addresses there have no names\n",
		       n);
}

static uint64_t attach_ns(const json_t *attach, const char *key)
{
	const json_int_t ns = json_integer_value(json_object_get(attach, key));

	return ns > 0 ? (uint64_t)ns : 0;
}

struct report_outside report_outside(const struct perfdata *p)
{
	json_t *totals = p->ours ? perfdata_totals(p) : NULL;
	const json_t *attach = json_object_get(totals, "attach");
	const struct report_outside out = {
		.away_ns = attach_ns(attach, "paused_ns") + attach_ns(attach, "asleep_in_vmm_ns"),
		.unstarted_ns = attach_ns(attach, "never_started_ns"),
	};

	json_decref(totals);
	return out;
}

/* As summary_attach() writes it: rows of their own, as no sample stands for that time. */
static void print_outside(const struct perfdata *p)
{
	const struct report_outside o = report_outside(p);

	if (o.away_ns)
		printf("# outside of the shares: %10.3f s  [paused or in the VMM]\n",
		       (double)o.away_ns / 1e9);
	if (o.unstarted_ns)
		printf("# outside of the shares: %10.3f s  [vCPUs that were never started]\n",
		       (double)o.unstarted_ns / 1e9);
}

static uint64_t span_ns(const struct perfdata *p)
{
	return p->last_ns > p->first_ns ? p->last_ns - p->first_ns : 0;
}

static void print_events(const struct perfdata *p)
{
	if (p->nevents < 2)
		return;
	fputs("# events:", stdout);
	for (uint32_t i = 0; i < p->nevents; i++) {
		fputs(i ? ", " : " ", stdout);
		utf8_put(stdout, p->events[i].name);
		printf(" (%" PRIu64 ")", p->events[i].samples);
	}
	puts("; --event NAME shows another");
}

/* Lists the guest's kernels, where it had several. */
static void print_epochs(const struct perfdata *p)
{
	const uint64_t begin = p->first_ns;

	for (const struct perfdata *at = p; p->next_epoch && at; at = at->next_epoch) {
		printf("# kernel %" PRIu32 ": ", at->epoch);
		utf8_put(stdout, at->guest[0] ? at->guest : "unknown");
		if (at->own.samples)
			printf(", from %.3f s to %.3f s", (double)(at->own.first_ns - begin) / 1e9,
			       (double)(at->own.last_ns - begin) / 1e9);
		printf(", %" PRIu64 " samples%s\n", at->own.samples,
		       at->next_epoch ? "" : "; --epoch N shows one");
	}
}

/* Prints the shares of the modes that only files of perf have, where they are not 0. */
static void print_other_modes(const struct agg *a)
{
	static const char *const name[AGG_MODES] = {
		[AGG_GUEST_KERNEL] = "guest kernel",
		[AGG_GUEST_USER] = "guest user",
		[AGG_HYPERVISOR] = "hypervisor",
		[AGG_NO_MODE] = "in no known mode",
	};

	for (unsigned int i = AGG_GUEST_KERNEL; i < AGG_MODES; i++)
		if (a->mode_weight[i])
			printf(", %.2f %% %s", report_percent(a->mode_weight[i], a->weight),
			       name[i]);
}

void report_header(const struct report *r)
{
	const struct perfdata *p = r->p;
	const struct agg *a = r->a;
	char note[NAMES_NOTE_MAX];

	printf("# event %s: ", p->event[0] ? p->event : "unknown");
	if (p->counted)
		printf("%" PRIu64 " counted, in ", a->weight);
	printf("%" PRIu64, a->samples);
	if (a->samples != p->nsamples)
		printf(" of %" PRIu64, p->nsamples);
	if (p->counted)
		printf(" stacks");
	else
		printf(" samples over %.3f s", (double)span_ns(p) / 1e9);
	if (p->ncpus)
		printf(" on %u %sCPU%s", p->ncpus, p->ours ? "v" : "", p->ncpus == 1 ? "" : "s");
	if (p->guest[0])
		printf(", %s%s", p->ours && p->osrelease[0] ? "guest " : "", p->guest);
	printf("\n# %s: %.2f %% idle, %.2f %% kernel, %.2f %% user",
	       p->counted ? "of these" : "time",
	       report_percent(a->mode_weight[AGG_IDLE], a->weight),
	       report_percent(a->mode_weight[AGG_KERNEL], a->weight),
	       report_percent(a->mode_weight[AGG_USER], a->weight));
	print_other_modes(a);
	if (p->nlost)
		printf("; lost %" PRIu64 " samples (%.2f %%)\n", p->nlost,
		       report_percent(p->nlost, p->nlost + a->samples));
	else
		printf("%s\n", p->counted ? "" : "; no samples lost");
	print_outside(p);
	print_engine(r);
	print_epochs(p);
	print_events(p);
	print_missed(r);
	print_left_out(r);
	if (p->partial)
		printf("# PARTIAL: %s\n", p->message);
	names_note(r->n, note);
	if (note[0])
		printf("# note: %s\n", note);
	if (!names_have_kernel(r->n) && a->mode_weight[AGG_KERNEL] + a->mode_weight[AGG_IDLE])
		printf("# no kernel symbols were found for this profile: addresses are shown\n");
	if (a->mode_weight[AGG_GUEST_KERNEL] + a->mode_weight[AGG_GUEST_USER] +
	    a->mode_weight[AGG_HYPERVISOR])
		printf("# the code of guests and hypervisors is that of other machines: addresses "
		       "are "
		       "shown\n");
}

void report_run_header(const struct report *r)
{
	const struct perfdata *p = r->p;
	json_t *totals = perfdata_totals(p);

	fputs("# profile of ", stdout);
	utf8_put(stdout, *p->hostname			     ? p->hostname
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

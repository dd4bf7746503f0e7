/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/summary/where.h"

#include "profile/record/host/host_switches.h"
#include "profile/format/sink/where.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const text[STAT_WHERES] = {
	[STAT_GUEST] = "guest",
	[STAT_KVM] = "KVM",
	[STAT_VMM] = "VMM",
	[STAT_RUNNABLE] = "waiting for a processor",
	[STAT_HALTED] = "halted",
	[STAT_STOPPED] = "stopped by kvmprof",
	[STAT_WAITING] = "asleep in KVM",
	[STAT_UNTOLD] = "not told apart",
};

static const struct stat_row *row_of(const struct stat_table *t, unsigned int where)
{
	for (unsigned int i = 0; i < t->n; i++)
		if (!strncmp(t->row[i].name, "time:", 5) &&
		    !strcmp(t->row[i].name + 5, stat_where_name[where]))
			return &t->row[i];
	return NULL;
}

/* "consumer 0.120 s, main 0.013 s" */
static void print_most(const struct host_threads_stats *t, FILE *out)
{
	for (size_t i = 0; i < sizeof(t->most) / sizeof(t->most[0]) && t->most[i].weight_ns; i++)
		fprintf(out, "%s%s %.3f s", i ? ", " : ": ", t->most[i].comm,
			(double)t->most[i].weight_ns / 1e9);
	if (t->seen > sizeof(t->most) / sizeof(t->most[0]))
		fprintf(out, ", ...");
}

static void print_threads(const struct summary *s, FILE *out)
{
	const struct host_threads_stats *t = &s->stats->threads;

	if (t->opened) {
		fprintf(out,
			"kvmprof: event host-threads: the VMM's other threads had processors for "
			"%.3f s, and %" PRIu64 " samples stand for %.3f s of it",
			(double)t->counted_ns / 1e9, t->samples, (double)t->weight_ns / 1e9);
		print_most(t, out);
		fputc('\n', out);
	}
	if (t->lost)
		fprintf(out,
			"kvmprof: warning: event host-threads: %" PRIu64
			" samples found no room in the kernel's rings and are lost\n",
			t->lost);
	if (s->threads_note)
		fprintf(out, "kvmprof: note: event host-threads: %s\n", s->threads_note);
}

static void print_host(const struct summary *s, const struct stat_table *t, FILE *out)
{
	const struct stat_row *row = t ? row_of(t, STAT_HALTED) : NULL;
	const bool halts = t ? row && row->supported : s->stats->where[SAMPLE_HALTED] != 0;

	fprintf(out,
		"kvmprof: event host: this host tells %s, the call chains of its kernel%s%s%s%s\n",
		s->stats->where[SAMPLE_IN_GUEST] ? "when the guest runs" : "of KVM_RUN as a whole",
		s->host_names ? ", with names" : ", without names", halts ? ", halts" : "",
		s->switches ? ", and who else had the processor" : "",
		s->stats->where[SAMPLE_IN_GUEST]
			? ""
			: "; not (or there was no such time) the guest from KVM");
	if (s->switches_why)
		fprintf(out, "kvmprof: event host: who else had the processor is not known: %s\n",
			s->switches_why);
	if (host_switches_lost(s->switches))
		fprintf(out,
			"kvmprof: event host: records of the host's scheduler were lost %" PRIu64
			" times: waits of those moments have no task\n",
			host_switches_lost(s->switches));
	print_threads(s, out);
}

void summary_where_json(const struct summary *s, struct buf *out)
{
	if (!s->host)
		return;
	buf_printf(out, ",\"where\":{");
	for (unsigned int i = 0; i < SAMPLE_WHERES; i++)
		buf_printf(out, "%s\"%s\":%" PRIu64, i ? "," : "", where_name((enum sample_where)i),
			   s->stats->where[i]);
	buf_printf(out,
		   "},\"host_threads\":{\"threads\":%u,\"ns\":%" PRIu64 ",\"samples\":%" PRIu64
		   ",\"sampled_ns\":%" PRIu64 ",\"lost\":%" PRIu64 "}",
		   s->stats->threads.opened, s->stats->threads.counted_ns,
		   s->stats->threads.samples, s->stats->threads.weight_ns, s->stats->threads.lost);
}

/* What would be printed as 0.0 is left out. */
static void print_share(FILE *out, const char **sep, const char *what, double percent)
{
	if (percent < 0.05)
		return;
	fprintf(out, "%s%s %.1f %%", *sep, what, percent);
	*sep = ", ";
}

/* As the vCPUs' own accounts have it. */
static void print_accounts(const struct stat_table *t, const char **sep, FILE *out)
{
	double all = (double)t->elapsed_ns * t->vcpus;

	for (unsigned int i = 0; all > 0 && i < STAT_WHERES; i++) {
		const struct stat_row *r = row_of(t, i);

		print_share(out, sep, text[i],
			    r && r->supported ? 100 * (double)stat_sum(t, r) / all : 0);
	}
}

/* As samples have it: there are no accounts of another process's vCPUs. */
static void print_samples(const struct summary *s, const char **sep, FILE *out)
{
	double all = 0;

	for (unsigned int i = 0; i < SAMPLE_WHERES; i++)
		all += (double)s->stats->where[i];
	for (unsigned int i = 0; all > 0 && i < STAT_WHERES; i++)
		for (unsigned int w = 0; w < SAMPLE_WHERES; w++)
			if (!strcmp(where_name((enum sample_where)w), stat_where_name[i]))
				print_share(out, sep, text[i],
					    100 * (double)s->stats->where[w] / all);
}

void summary_where_print(const struct summary *s, FILE *out)
{
	struct stat_table *t = s->stat ? calloc(1, sizeof(*t)) : NULL;
	const char *sep = "kvmprof: where the time went: ";

	if (t) {
		stat_read(s->stat, t);
		print_accounts(t, &sep, out);
	} else if (s->host) {
		print_samples(s, &sep, out);
	}
	if (*sep == ',')
		fputc('\n', out);
	if (s->host)
		print_host(s, t, out);
	free(t);
}

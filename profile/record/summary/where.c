/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/summary/where.h"

#include "profile/format/sink/where.h"
#include "profile/record/host/host_switches.h"

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

static void write_threads(const struct facts_out *o, const struct summary *s)
{
	const struct host_threads_stats *t = &s->stats->threads;
	struct buf most;

	/* Makes ": consumer 0.120 s, main 0.013 s". */
	buf_init(&most);
	for (size_t i = 0; i < ARRAY_SIZE(t->most) && t->most[i].weight_ns; i++)
		buf_printf(&most, "%s%s %.3f s", i ? ", " : ": ", t->most[i].comm,
			   (double)t->most[i].weight_ns / 1e9);
	buf_printf(&most, "%s", t->seen > ARRAY_SIZE(t->most) ? ", ..." : "");

	FACTS_OBJECT(
		o, "host_threads", VARS("most", facts_string(&most)),
		NUM("threads", t->opened,
		    "event host-threads: the VMM's other threads ran for {ns:3/1e9} s; {samples} "
		    "samples represent {sampled_ns:3/1e9} s of it{most}"),
		NUM("ns", t->counted_ns), NUM("samples", t->samples),
		NUM("sampled_ns", t->weight_ns),
		NUM("lost", t->lost,
		    "warning: event host-threads: {lost} samples were lost, because the kernel's "
		    "ring buffers were full"),
		VARS("note", s->threads_note, "note: event host-threads: {note}"));
	buf_deinit(&most);
}

static void write_host(const struct facts_out *o, const struct summary *s,
		       const struct stat_table *t)
{
	const struct stat_row *row = t ? row_of(t, STAT_HALTED) : NULL;
	const bool halts = t ? row && row->supported : s->stats->where[SAMPLE_HALTED] != 0;
	const bool apart = s->stats->where[SAMPLE_IN_GUEST] != 0;

	if (o->text)
		FACTS(o, STR("runs", apart ? "when the guest runs" : "of KVM_RUN as a whole"),
		      STR("names", s->host_names ? "with" : "without"),
		      STR("halts", halts ? ", halts" : ""),
		      STR("others", s->switches ? ", and who else had the processor" : ""),
		      STR("apart",
			  apart ? "" : "; not (or there was no such time) the guest from KVM"),
		      LINE(true, "event host: this host reports {runs}, the call chains of its "
				 "kernel, {names} names{halts}{others}{apart}"),
		      STR("why", s->switches_why,
			  "event host: who else had the processor is not known: {why}"),
		      NUM("lost", host_switches_lost(s->switches),
			  "event host: records of the host's scheduler were lost {lost} times: "
			  "waits of those moments have no task"));
	facts_object(o, "where");
	for (unsigned int i = 0; i < SAMPLE_WHERES; i++)
		FACTS(o, NUM(where_name((enum sample_where)i), s->stats->where[i]));
	facts_object_end(o);
	write_threads(o, s);
}

/* Adds nothing that would be printed as 0.0. */
static void add_share(struct buf *line, const char *what, double percent)
{
	if (percent >= 0.05)
		buf_printf(line, "%s%s %.1f %%", line->len ? ", " : "", what, percent);
}

/* Adds the shares from the vCPUs' own accounts. */
static void add_accounts(struct buf *line, const struct stat_table *t)
{
	double all = (double)t->elapsed_ns * t->vcpus;

	for (unsigned int i = 0; all > 0 && i < STAT_WHERES; i++) {
		const struct stat_row *r = row_of(t, i);

		add_share(line, text[i],
			  r && r->supported ? 100 * (double)stat_sum(t, r) / all : 0);
	}
}

/* Adds the shares from samples: another process's vCPUs have no accounts. */
static void add_samples(struct buf *line, const struct summary *s)
{
	double all = 0;

	for (unsigned int i = 0; i < SAMPLE_WHERES; i++)
		all += (double)s->stats->where[i];
	for (unsigned int i = 0; all > 0 && i < STAT_WHERES; i++)
		for (unsigned int w = 0; w < SAMPLE_WHERES; w++)
			if (!strcmp(where_name((enum sample_where)w), stat_where_name[i]))
				add_share(line, text[i], 100 * (double)s->stats->where[w] / all);
}

void summary_where(const struct facts_out *o, const struct summary *s)
{
	struct stat_table *t = o->text && s->stat ? calloc(1, sizeof(*t)) : NULL;
	struct buf shares;

	buf_init(&shares);
	if (t) {
		stat_read(s->stat, t);
		add_accounts(&shares, t);
	} else if (s->host) {
		add_samples(&shares, s);
	}

	FACTS(o, VARS("shares", facts_string(&shares), "where the time went: {shares}"));
	if (s->host)
		write_host(o, s, t);
	buf_deinit(&shares);
	free(t);
}

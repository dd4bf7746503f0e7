/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/summary/tasks.h"

#include <inttypes.h>

void summary_tasks_print(const struct offcpu_stats *s, FILE *out)
{
	const struct guest_look_stats *l = &s->look;

	if (!s->on)
		return;
	if (!l->looks) {
		fprintf(out, "kvmprof: event off-cpu: no look at tasks: they were not known\n");
		return;
	}
	fprintf(out,
		"kvmprof: event off-cpu: %" PRIu64 " samples for %.3f s of waiting, in %" PRIu64
		" looks every %g ms; a look took p50 %.2f ms, p99 %.2f ms\n",
		s->samples, (double)s->weight_ns / 1e9, l->looks, (double)s->period_ns / 1e6,
		(double)hist_quantile(&l->cost_ns, 500) / 1e6,
		(double)hist_quantile(&l->cost_ns, 990) / 1e6);
	if (s->stretched)
		fprintf(out,
			"kvmprof: note: looks at tasks took more than 1/%u of the time: %" PRIu64
			" periods went to the next look\n",
			OFFCPU_SHARE, s->stretched);
	if (l->by[LINUX_SLEEPER_CHANGED] || l->by[LINUX_SLEEPER_UNREADABLE] || l->skipped || l->cut)
		fprintf(out,
			"kvmprof: event off-cpu: of %" PRIu64 " tasks seen %" PRIu64
			" moved while they were read, %" PRIu64 " were unreadable; %" PRIu64
			" lists changed on the way\n",
			l->tasks, l->by[LINUX_SLEEPER_CHANGED],
			l->by[LINUX_SLEEPER_UNREADABLE] + l->skipped, l->cut);
	if (l->by[LINUX_SLEEPER_UNKNOWN])
		fprintf(out,
			"kvmprof: event off-cpu: %" PRIu64 " times a task's stack was not known\n",
			l->by[LINUX_SLEEPER_UNKNOWN]);
}

void summary_tasks_json(const struct offcpu_stats *s, struct buf *b)
{
	static const char *const key[LINUX_SLEEPER_COUNT] = { "taken",	  "running",	"dead",
							      "no_stack", "unreadable", "changed" };
	const struct guest_look_stats *l = &s->look;

	if (!s->on) {
		buf_printf(b, ",\"off_cpu\":null");
		return;
	}
	buf_printf(b,
		   ",\"off_cpu\":{\"period_ns\":%" PRIu64 ",\"samples\":%" PRIu64
		   ",\"weight_ns\":%" PRIu64 ",\"looks\":%" PRIu64
		   ",\"looks_without_tasks\":%" PRIu64 ",\"stretched_periods\":%" PRIu64
		   ",\"late_periods\":%" PRIu64 ",\"tasks\":%" PRIu64,
		   s->period_ns, s->samples, s->weight_ns, l->looks, l->failed, s->stretched,
		   s->late, l->tasks);
	for (unsigned int i = 0; i < LINUX_SLEEPER_COUNT; i++)
		buf_printf(b, ",\"%s\":%" PRIu64, key[i], l->by[i]);
	buf_printf(b,
		   ",\"skipped\":%" PRIu64 ",\"cut\":%" PRIu64 ",\"look_ns\":{\"p50\":%" PRIu64
		   ",\"p99\":%" PRIu64 ",\"max\":%" PRIu64 "}}",
		   l->skipped, l->cut, hist_quantile(&l->cost_ns, 500),
		   hist_quantile(&l->cost_ns, 990), l->cost_ns.max);
}

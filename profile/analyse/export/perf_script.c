/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perf-script: every sample as `perf script` and `kvmprof script` print it.
 *
 *   sample = comm tid "[" cpu "]" seconds "." microseconds ": " weight event ": \n"
 *            *( "\t" address symbol "+0x" offset " (" dso ")\n" ) "\n"
 *
 * Innermost frame first. The address is a run-time one in the kernel, and an offset in
 * the file elsewhere. Names are replaced as `kvmprof script` does it.
 */
#include "profile/analyse/export/private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void put_frame(struct export_out *o, const struct stackset *s, uint32_t frame, bool caller)
{
	const struct stackset_frame *f = &s->frame[frame];
	const struct stackset_func *func = &s->func[f->func];
	bool kernel = stackset_kind_in_kernel(func->kind) || f->addr >> 63;
	/*
	 * perf records return addresses; a stackset has the address that was looked up, one byte
	 * less.
	 */
	uint64_t back = caller && !s->ours && f->addr ? 1 : 0;
	char hex[24];

	snprintf(hex, sizeof(hex), "\t%16" PRIx64 " ", (kernel ? f->addr : f->image) + back);
	export_out_text(o, hex);
	if (func->named) {
		export_out_clean(o, func->name);
		export_out_text(o, "+0x");
		export_out_hex(o, f->off + back);
	} else {
		export_out_text(o, "[unknown]");
	}
	export_out_text(o, " (");
	export_out_clean(o, func->dso);
	export_out_text(o, ")\n");
}

EXPORT_WRITER(perf_script)
{
	const char *event = *s->event ? s->event : "event";

	(void)path;
	(void)opt;
	(void)e;
	for (size_t i = 0; i < s->nsamples; i++) {
		const struct stackset_sample *sample = &s->sample[i];
		const struct stackset_stack *st = &s->stack[sample->stack];
		const char *comm = s->task[st->task].comm;
		char head[160];

		export_out_clean(o, *comm ? comm : "?");
		snprintf(head, sizeof(head),
			 " %5u [%03d] %5" PRIu64 ".%06" PRIu64 ": %10" PRIu64 " ",
			 s->task[st->task].tid, (int)sample->cpu, sample->time_ns / 1000000000u,
			 sample->time_ns % 1000000000u / 1000u, sample->weight);
		export_out_text(o, head);
		export_out_clean(o, event);
		export_out_text(o, ": \n");
		for (uint32_t j = 0; j < st->n; j++)
			put_frame(o, s, st->frame[j], j > 0);
		export_out_char(o, '\n');
	}
	return 0;
}

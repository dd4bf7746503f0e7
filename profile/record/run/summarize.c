/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/cleanup.h"
#include "profile/record/run/run.h"
#include "profile/format/sink/ring.h"

#include <stdio.h>

/* Resident bytes of this process, less those of guest RAM. */
static uint64_t rss_beyond_guest(const struct gmem *mem)
{
	cleanup_fclose FILE *f = fopen("/proc/self/smaps", "re");
	unsigned int ours = mem->remote ? 0 : mem->n;
	uint64_t start = 0, rss = 0, kb;
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		unsigned long long a, b;

		if (sscanf(line, "%llx-%llx ", &a, &b) == 2) {
			start = a;
		} else if (sscanf(line, "Rss: %llu kB", &a) == 1) {
			bool guest = false;

			kb = a;
			for (unsigned int i = 0; i < ours; i++) {
				uint64_t h = (uintptr_t)mem->region[i].host;

				guest |= start >= h && start - h < mem->region[i].size;
			}
			rss += guest ? 0 : kb << 10;
		}
	}
	return rss;
}

void run_summary(struct run *r, const struct pipeline_stats *stats, struct summary *s)
{
	uint64_t first = vm_first_entry_ns(r->vm);

	*s = (struct summary){
		.opt = r->opt,
		.events = &r->events,
		.target = &r->source.target,
		.quirks = &r->quirks,
		.vm = r->vm,
		.stats = stats,
		.stat = r->stat,
		.host = r->has_host,
		.host_names = r->host_names.kernel != NULL,
		.switches = r->host_switches,
		.threads_note = r->threads_note.code ? r->threads_note.text : NULL,
		.switches_why = r->switches_why.code ? r->switches_why.text : NULL,
		.bound = &r->bound,
		.asked = &r->markers.pipeline,
		.moments = &r->markers.list,
		.requests = &r->requests,
		.packets = &r->packets,
		.begun_ns = run_markers_collect_ns(&r->markers, r->vm),
		.changes = run_control_changes(r->control),
		.changes_json = run_control_json,
		.control = r->control,
		.domain = r->domain,
		.console_dropped = console_dropped(&r->console),
		.overwritten = r->ring ? sink_ring_overwritten(r->ring) : 0,
		.crash = &r->crash,
		.tuned = r->tuned.data ? (const char *)r->tuned.data : "",
		.startup_ns = first ? first - r->start_ns - r->load_ns : 0,
		.load_ns = r->load_ns,
		.rss_extra = rss_beyond_guest(vm_memory(r->vm)),
	};
	/* What this host did in its own time is no part of a profile that is to be the same again. */
	if (vm_is_exact(r->vm))
		s->startup_ns = s->load_ns = s->rss_extra = 0;
}

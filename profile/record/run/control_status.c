/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_control_status: the figures of a run while it goes on. They are read where the
 * vCPUs write them, so each is a little old, and they need not fit together exactly.
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "profile/record/control/reply.h"
#include "profile/record/run/control_private.h"
#include "profile/format/sink/ring.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

uint64_t run_control_samples(const struct run_control *c)
{
	struct vm *vm = c->run->vm;
	uint64_t n = 0;

	for (unsigned int i = 0; i < vm_vcpus(vm); i++)
		n += vm_stats(vm, i).samples;
	return n;
}

uint64_t run_control_lost(const struct run_control *c)
{
	struct vm *vm = c->run->vm;
	uint64_t n = 0;

	for (unsigned int i = 0; i < vm_vcpus(vm); i++)
		n += ring_dropped(vm_ring(vm, i));
	return n;
}

/* Over the last whole tick and what came since; before there is one, since the guest's first instruction. */
static double rate_hz(const struct run_control *c)
{
	uint64_t now = clock_mono_ns(), since = c->before.time_ns, samples = c->before.samples;

	if (!since) {
		since = vm_first_entry_ns(c->run->vm);
		samples = 0;
	}
	if (!since || now <= since)
		return 0;
	return (double)(run_control_samples(c) - samples) * 1e9 / (double)(now - since);
}

static uint64_t rss_bytes(void)
{
	cleanup_fclose FILE *f = fopen("/proc/self/statm", "re");
	unsigned long long size, resident = 0;

	if (!f || fscanf(f, "%llu %llu", &size, &resident) != 2)
		return 0;
	return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void put_events(const struct run_control *c, struct buf *b)
{
	const struct profile_info *info = &c->run->info;
	uint64_t samples[VM_MAX_EVENTS] = { 0 };
	struct vm *vm = c->run->vm;

	for (unsigned int k = 0; k < vm_vcpus(vm); k++) {
		const struct vcpu_stats st = vm_stats(vm, k);

		for (unsigned int i = 0; i < VM_MAX_EVENTS; i++)
			samples[i] += st.event_samples[i];
	}
	buf_printf(b, ",\"events\":[");
	for (unsigned int i = 0; i < run_control_events(c); i++) {
		buf_printf(b, "%s{\"name\":", i ? "," : "");
		json_quote(b, info->event[i].name);
		control_put_bool(b, "armed", vm_event_is_armed(vm, i));
		control_put_u64(b, "period", vm_period(vm, i));
		control_put_text(b, "unit", run_control_unit_name(run_control_unit(c, i)));
		control_put_u64(b, "samples", samples[i]);
		buf_u8(b, '}');
	}
	buf_u8(b, ']');
}

static void put_vcpu(const struct run_control *c, unsigned int i, const struct vcpu_stats *st,
		     struct buf *b)
{
	buf_printf(b, "{\"vcpu\":%u", i);
	control_put_bool(b, "collecting", vm_vcpu_is_collecting(c->run->vm, i));
	control_put_u64(b, "samples", st->samples);
	buf_printf(b, ",\"events\":[");
	for (unsigned int k = 0; k < run_control_events(c); k++)
		buf_printf(b, "%s%" PRIu64, k ? "," : "", st->event_samples[k]);
	buf_u8(b, ']');
	control_put_u64(b, "kernel", st->kernel);
	control_put_u64(b, "user", st->user);
	control_put_u64(b, "idle", st->idle);
	control_put_u64(b, "lost", ring_dropped(vm_ring(c->run->vm, i)));
	control_put_u64(b, "overruns", st->overruns);
	control_put_u64(b, "uncollected", st->uncollected);
	control_put_u64(b, "offline", st->offline);
	control_put_hist(b, "stopped_ns", &st->stop_ns);
	buf_u8(b, '}');
}

static const char *state(const struct run_control *c)
{
	/* Of the result only this one word is looked at before its time. */
	return vm_result(c->run->vm)->reason != VM_RUNNING ? "ending"
	       : vm_first_entry_ns(c->run->vm)		   ? "running"
							   : "starting";
}

void run_control_put_status(struct run_control *c, struct buf *b)
{
	struct vm *vm = c->run->vm;
	uint64_t first = vm_first_entry_ns(vm), overruns = 0, uncollected = 0;
	struct hist stop = { 0 }, latency = { 0 };

	control_put_text(b, "state", state(c));
	control_put_u64(b, "elapsed_ns", first ? clock_mono_ns() - first : 0);
	control_put_bool(b, "collecting", vm_is_collecting(vm));
	put_events(c, b);
	buf_printf(b, ",\"vcpus\":[");
	for (unsigned int i = 0; i < vm_vcpus(vm); i++) {
		const struct vcpu_stats st = vm_stats(vm, i);

		if (i)
			buf_u8(b, ',');
		put_vcpu(c, i, &st, b);
		overruns += st.overruns;
		uncollected += st.uncollected;
		hist_merge(&stop, &st.stop_ns);
		hist_merge(&latency, &st.latency_ns);
	}
	buf_u8(b, ']');
	control_put_u64(b, "samples", run_control_samples(c));
	control_put_u64(b, "lost", run_control_lost(c));
	control_put_u64(b, "overwritten", c->run->ring ? sink_ring_overwritten(c->run->ring) : 0);
	control_put_u64(b, "overruns", overruns);
	control_put_u64(b, "uncollected", uncollected);
	control_put_hist(b, "stopped_ns", &stop);
	control_put_hist(b, "latency_ns", &latency);
	buf_printf(b, ",\"rate_hz\":%.1f", rate_hz(c));
	control_put_u64(b, "stack_size", c->stack_size);
	control_put_u64(b, "max_stack", c->max_stack);
	control_put_u64(b, "changes", run_control_changes(c));
	control_put_u64(b, "snapshots", atomic_load(&c->snapshots));
	control_put_u64(b, "rss_bytes", rss_bytes());
}

void run_control_put_stats(struct run_control *c, struct buf *b)
{
	struct vm *vm = c->run->vm;

	buf_printf(b, ",\"vcpus\":[");
	for (unsigned int i = 0; i < vm_vcpus(vm); i++) {
		const struct vcpu_stats st = vm_stats(vm, i);
		const char *sep = "";

		buf_printf(b, "%s{\"vcpu\":%u,\"exits\":{", i ? "," : "", i);
		for (unsigned int k = 0; k < VCPU_EXIT_KINDS; k++) {
			if (!st.exits[k])
				continue;
			buf_printf(b, "%s\"%u_%s\":%" PRIu64, sep, k, vcpu_exit_name(k),
				   st.exits[k]);
			sep = ",";
		}
		buf_u8(b, '}');
		control_put_hist(b, "stopped_ns", &st.stop_ns);
		control_put_hist(b, "latency_ns", &st.latency_ns);
		control_put_u64(b, "stack_capped", st.stack_capped);
		control_put_u64(b, "stack_unmapped", st.stack_unmapped);
		control_put_u64(b, "stack_unreadable", st.stack_none);
		control_put_u64(b, "unknown_io", st.unknown_io);
		control_put_u64(b, "unknown_mmio", st.unknown_mmio);
		buf_u8(b, '}');
	}
	buf_u8(b, ']');
}

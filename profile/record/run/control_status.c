/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_control_status: the counters of a run while it is under way. They are read while the vCPUs
 * update them, so each is slightly old, and they need not be consistent with each other.
 */
#include "profile/record/run/private.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "profile/format/sink/ring.h"
#include "vmm/device.h"
#include "vmm/vm.h"
#include "base/ring.h"
#include "vmm/control.h"
#include "vmm/end.h"

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

/*
 * Returns the rate over the last complete tick and the time since; before the first one, since the
 * guest's first instruction.
 */
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

static uint64_t rss_bytes(const struct run_control *c)
{
	char text[128];
	ssize_t n = c->statm < 0 ? -1 : pread(c->statm, text, sizeof(text) - 1, 0);
	unsigned long long size, resident = 0;

	text[n > 0 ? n : 0] = '\0';
	if (sscanf(text, "%llu %llu", &size, &resident) != 2)
		return 0;
	return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void put_hist(struct json_writer *w, const char *key, const struct hist *h)
{
	json_put_object(w, key, "count", h->count, "p50", hist_quantile(h, 500), "p99",
			hist_quantile(h, 990), "max", h->max);
}

static void put_events(const struct run_control *c, struct json_writer *w)
{
	const struct profile_info *info = &c->run->profile.info;
	uint64_t samples[VM_MAX_EVENTS] = { 0 };
	struct vm *vm = c->run->vm;

	for (unsigned int k = 0; k < vm_vcpus(vm); k++) {
		const struct vcpu_stats st = vm_stats(vm, k);

		for (unsigned int i = 0; i < VM_MAX_EVENTS; i++)
			samples[i] += st.event_samples[i];
	}
	json_array_begin(w, "events");
	for (unsigned int i = 0; i < run_control_events(c); i++)
		json_put_object(w, NULL, "name", info->event[i].name, "armed",
				vm_event_is_armed(vm, i), "period", vm_period(vm, i), "unit",
				run_control_unit_name(run_control_unit(c, i)), "samples",
				samples[i]);
	json_array_end(w);
}

static void put_vcpu(const struct run_control *c, unsigned int i, const struct vcpu_stats *st,
		     struct json_writer *w)
{
	json_object_begin(w, NULL);
	json_put(w, "vcpu", i, "collecting", vm_vcpu_is_collecting(c->run->vm, i), "samples",
		 st->samples);
	json_array_begin(w, "events");
	for (unsigned int k = 0; k < run_control_events(c); k++)
		json_u64(w, NULL, st->event_samples[k]);
	json_array_end(w);
	json_put(w, "kernel", st->kernel, "user", st->user, "idle", st->idle, "lost",
		 ring_dropped(vm_ring(c->run->vm, i)), "overruns", st->overruns, "uncollected",
		 st->uncollected, "offline", st->offline);
	put_hist(w, "stopped_ns", &st->stop_ns);
	json_object_end(w);
}

static const char *state(const struct run_control *c)
{
	/* Before the result is complete only this member may be read. */
	return vm_result(c->run->vm)->reason != VM_RUNNING ? "ending"
	       : vm_first_entry_ns(c->run->vm)		   ? "running"
							   : "starting";
}

void run_control_put_status(struct run_control *c, struct json_writer *w)
{
	const struct sink *ring = c->run->profile.ring;
	struct vm *vm = c->run->vm;
	uint64_t first = vm_first_entry_ns(vm), overruns = 0, uncollected = 0;
	struct hist stop = { 0 }, latency = { 0 };

	json_put(w, "state", state(c), "elapsed_ns", first ? clock_mono_ns() - first : 0,
		 "collecting", vm_is_collecting(vm));
	put_events(c, w);
	json_array_begin(w, "vcpus");
	for (unsigned int i = 0; i < vm_vcpus(vm); i++) {
		const struct vcpu_stats st = vm_stats(vm, i);

		put_vcpu(c, i, &st, w);
		overruns += st.overruns;
		uncollected += st.uncollected;
		hist_merge(&stop, &st.stop_ns);
		hist_merge(&latency, &st.latency_ns);
	}
	json_array_end(w);
	json_put(w, "samples", run_control_samples(c), "lost", run_control_lost(c), "overwritten",
		 ring ? sink_ring_overwritten(ring) : 0, "overruns", overruns, "uncollected",
		 uncollected);
	put_hist(w, "stopped_ns", &stop);
	put_hist(w, "latency_ns", &latency);
	json_put(w, "rate_hz", json_fixed(1, rate_hz(c)), "stack_size", c->stack_size, "max_stack",
		 c->max_stack, "changes", run_control_changes(c), "snapshots",
		 atomic_load(&c->snapshots), "rss_bytes", rss_bytes(c));
}

void run_control_put_stats(struct run_control *c, struct json_writer *w)
{
	struct vm *vm = c->run->vm;

	json_array_begin(w, "vcpus");
	for (unsigned int i = 0; i < vm_vcpus(vm); i++) {
		const struct vcpu_stats st = vm_stats(vm, i);

		json_object_begin(w, NULL);
		json_u64(w, "vcpu", i);
		json_object_begin(w, "exits");
		for (unsigned int k = 0; k < VCPU_EXIT_KINDS; k++) {
			char key[64];

			snprintf(key, sizeof(key), "%u_%s", k, vm_exit_name(k));
			if (st.exits[k])
				json_u64(w, key, st.exits[k]);
		}
		json_object_end(w);
		put_hist(w, "stopped_ns", &st.stop_ns);
		put_hist(w, "latency_ns", &st.latency_ns);
		json_put(w, "stack_capped", st.stack_capped, "stack_unmapped", st.stack_unmapped,
			 "stack_unreadable", st.stack_none, "unknown_io", st.unknown_io,
			 "unknown_mmio", st.unknown_mmio);
		json_object_end(w);
	}
	json_array_end(w);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/summary/events.h"

#include "vmm/vm.h"

static bool has_unit_ns(const struct vm_event *ev)
{
	return ev->kind == VM_EVENT_WALL || ev->kind == VM_EVENT_CPU || ev->kind == VM_EVENT_HOST ||
	       (ev->kind == VM_EVENT_PERF && ev->counter.clock);
}

bool summary_events_are_timers(const struct events *ev)
{
	const struct event_state *s;

	for (unsigned int i = 0; (s = events_of_vm(ev, i)); i++)
		if (!has_unit_ns(&s->vm))
			return false;
	return true;
}

static bool is_only_wall(const struct events *ev)
{
	return ev->n == 1 && ev->at[0].vm.kind == VM_EVENT_WALL;
}

static bool has_counter(const struct vm_event *ev)
{
	return ev->kind == VM_EVENT_PERF || ev->kind == VM_EVENT_HOST ||
	       (ev->kind == VM_EVENT_CPU && !ev->timer);
}

/* Adds up the counters of event i of all vCPUs. */
static struct vm_counter_stats counter_sum(const struct vm *vm, unsigned int i)
{
	struct vm_counter_stats sum = { 0 };

	for (unsigned int k = 0; k < vm_vcpus(vm); k++) {
		const struct vm_counter_stats c = vm_stats(vm, k).counter[i];

		sum.enabled_ns += c.enabled_ns;
		sum.running_ns += c.running_ns;
		sum.throttled += c.throttled;
		sum.lost += c.lost;
	}
	return sum;
}

static void write_samples(const struct facts_out *o, const struct event_state *s,
			  const struct pipeline_stats *p, unsigned int i)
{
	const bool ns = has_unit_ns(&s->vm), freq = s->vm.counter.freq;

	FACTS(o, VARS("ns", ns ? " ns" : ""), STR("name", s->name.text),
	      STR("unit", ns ? "ns" : "count"), NUM(freq ? "freq_hz" : "period", s->vm.period),
	      VAR("one_in", s->vm.period), NUM("samples", p->event_samples[i]),
	      NUM("weight", p->event_weight[i]),
	      LINE(ns && freq, "event {name}: {samples} samples for {weight:3/1e9} s"),
	      LINE(ns && !freq,
		   "event {name}: {samples} samples for {weight:3/1e9} s, one in {one_in} ns"),
	      LINE(!ns && freq, "event {name}: {samples} samples for {weight} counted"),
	      LINE(!ns && !freq,
		   "event {name}: {samples} samples for {weight} counted, one in {one_in}"),
	      FLAG_IF(s->vm.kind == VM_EVENT_PERF, "guest_only", s->vm.counter.exclude_host));
}

/* An event that always has its counter may lack some µs of its first and last moment. */
#define SHARED_BELOW 0.995

static void write_counter(const struct facts_out *o, const struct event_state *s,
			  const struct vm_counter_stats *c)
{
	const bool counted = has_counter(&s->vm), never = c->enabled_ns && !c->running_ns;
	const double share = c->enabled_ns ? (double)c->running_ns / (double)c->enabled_ns : 1;

	FACTS(o, VARS("name", s->name.text), VARD("percent", 100 * share),
	      NUM_IF(counted, "enabled_ns", c->enabled_ns),
	      NUM_IF(counted, "running_ns", c->running_ns),
	      LINE(never, "warning: event {name} never counted: other events had the PMU all the "
			  "time (multiplexing); sample it alone"),
	      LINE(!never && share < SHARED_BELOW,
		   "warning: event {name} counted for {percent:1} % of the time only, as other "
		   "events had the PMU meanwhile (multiplexing): weights are not scaled; sample "
		   "fewer events at once"),
	      NUM_IF(counted, "throttled", c->throttled,
		     "note: event {name}: the host's kernel throttled it {throttled} times: more "
		     "overflows than /proc/sys/kernel/perf_event_max_sample_rate allows; nothing "
		     "is lost, as each sample starts it again"),
	      NUM_IF(counted, "records_lost", c->lost,
		     "note: event {name}: {records_lost} overflow records lost; weights are "
		     "complete, as they come from the count"));
}

static void write_asked(const struct facts_out *o, const struct event_state *s)
{
	FACTS(o, STR("asked", s->asked),
	      STR_IF(*s->why, "why", s->why, "note: event {asked}: {why}"));
}

/* As text all samples are written first, then all counters, then all reasons. */
enum events_part { EVENTS_SAMPLES, EVENTS_COUNTERS, EVENTS_ASKED, EVENTS_PARTS };

static void write_events(const struct facts_out *o, const struct summary *s, enum events_part part)
{
	const struct events *ev = s->events;
	unsigned int n = 0;

	for (unsigned int i = 0; i < ev->n; i++) {
		const struct event_state *e = &ev->at[i];

		facts_object(o, NULL);
		if (o->json || part == EVENTS_ASKED)
			write_asked(o, e);
		if (!e->dropped && (o->json || (part == EVENTS_SAMPLES && !is_only_wall(ev))))
			write_samples(o, e, s->stats, n);
		if (!e->dropped && (o->json || part == EVENTS_COUNTERS)) {
			const struct vm_counter_stats c = counter_sum(s->vm, n);

			write_counter(o, e, &c);
		}
		n += !e->dropped;
		facts_object_end(o);
	}
}

void summary_events(const struct facts_out *o, const struct summary *s)
{
	facts_array(o, "events");
	/* The profile of exact counts has its own events, which are not sampled. */
	for (int part = 0; !s->opt->call_counts && part < (o->json ? 1 : EVENTS_PARTS); part++)
		write_events(o, s, (enum events_part)part);
	facts_array_end(o);
}

void summary_off_cpu(const struct facts_out *o, const struct offcpu_stats *s)
{
	static const char *const key[LINUX_SLEEPER_COUNT] = { "taken",	  "running",	"dead",
							      "no_stack", "unreadable", "changed" };
	const struct task_walk_stats *l = &s->look;
	const uint64_t unreadable = l->by[LINUX_SLEEPER_UNREADABLE] + l->skipped;
	const uint64_t moved = l->by[LINUX_SLEEPER_CHANGED];

	if (!s->on) {
		FACTS(o, STR("off_cpu", NULL));
		return;
	}

	facts_object(o, "off_cpu");
	FACTS(o, VART("took", &l->cost_ns), VAR("share", OFFCPU_SHARE), VAR("unread", unreadable),
	      VAR("moved", moved), VAR("unknown", l->by[LINUX_SLEEPER_UNKNOWN]),
	      NUM("period_ns", s->period_ns), NUM("samples", s->samples),
	      NUM("weight_ns", s->weight_ns),
	      LINE(!l->looks, "event off-cpu: no samples, because the tasks were not known"),
	      NUM("looks", l->looks,
		  "event off-cpu: {samples} samples for {weight_ns:3/1e9} s of waiting, from "
		  "{looks} scans of all tasks every {period_ns:g/1e6} ms; a scan took p50 "
		  "{took.p50:2/1e6} ms, p99 {took.p99:2/1e6} ms"),
	      NUM("looks_without_tasks", l->failed), NUM("stretched_periods", s->stretched),
	      LINE(l->looks && s->stretched,
		   "note: scans of all tasks took more than 1/{share} of the time, so "
		   "{stretched_periods} periods were skipped; their time counts for the next scan"),
	      NUM("late_periods", s->late), NUM("tasks", l->tasks), NUM("skipped", l->skipped),
	      NUM("cut", l->cut),
	      LINE(l->looks && (moved || unreadable || l->cut),
		   "event off-cpu: of {tasks} tasks {moved} changed while they were read, "
		   "{unread} were unreadable; {cut} lists of tasks changed during a scan"),
	      LINE(l->looks && l->by[LINUX_SLEEPER_UNKNOWN],
		   "event off-cpu: {unknown} times a task's stack was not known"));
	for (unsigned int i = 0; i < LINUX_SLEEPER_COUNT; i++)
		FACTS(o, NUM(key[i], l->by[i]));
	FACTS_OBJECT(o, "look_ns", NUM("p50", hist_quantile(&l->cost_ns, 500)),
		     NUM("p99", hist_quantile(&l->cost_ns, 990)), NUM("max", l->cost_ns.max));
	facts_object_end(o);
}

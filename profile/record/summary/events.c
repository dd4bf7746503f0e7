/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/summary/events.h"

#include "base/json.h"

#include <inttypes.h>
#include <string.h>

static bool has_unit_ns(const struct vm_event *ev)
{
	return ev->kind == VM_EVENT_WALL || ev->kind == VM_EVENT_CPU || ev->kind == VM_EVENT_HOST ||
	       (ev->kind == VM_EVENT_PERF && ev->counter.clock);
}

void summary_events_head(const struct events *ev, double freq_hz, char *out, size_t size)
{
	const struct event_state *s = events_of_vm(ev, 0);

	if (!s || s->vm.kind == VM_EVENT_WALL)
		snprintf(out, size, " at %.0f Hz", freq_hz);
	else
		snprintf(out, size, " of %s", s->name.text);
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

/* Of event i, over all vCPUs. */
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

/* An event that always has its counter may miss some µs of its first and last moment. */
#define SHARED_BELOW 0.995

static void print_counter(const char *name, const struct vm_counter_stats *c, FILE *out)
{
	double share = c->enabled_ns ? (double)c->running_ns / (double)c->enabled_ns : 1;

	if (c->enabled_ns && !c->running_ns)
		fprintf(out,
			"kvmprof: warning: event %s never counted: other events had the PMU all "
			"the time (multiplexing); sample it alone\n",
			name);
	else if (share < SHARED_BELOW)
		fprintf(out,
			"kvmprof: warning: event %s counted for %.1f %% of the time only, as other "
			"events had the PMU meanwhile (multiplexing): weights are not scaled; "
			"sample fewer events at once\n",
			name, 100 * share);
	if (c->throttled)
		fprintf(out,
			"kvmprof: note: event %s: the host's kernel throttled it %" PRIu64
			" times: more overflows than /proc/sys/kernel/perf_event_max_sample_rate "
			"allows; nothing is lost, as each sample starts it again\n",
			name, c->throttled);
	if (c->lost)
		fprintf(out,
			"kvmprof: note: event %s: %" PRIu64
			" overflow records lost; weights are complete, as they come from the "
			"count\n",
			name, c->lost);
}

void summary_events_print(const struct events *ev, const struct vm *vm,
			  const struct pipeline_stats *p, FILE *out)
{
	const struct event_state *s;

	for (unsigned int i = 0; !is_only_wall(ev) && (s = events_of_vm(ev, i)); i++) {
		fprintf(out, "kvmprof: event %s: %" PRIu64 " samples for ", s->name.text,
			p->event_samples[i]);
		if (has_unit_ns(&s->vm))
			fprintf(out, "%.3f s", (double)p->event_weight[i] / 1e9);
		else
			fprintf(out, "%" PRIu64 " counted", p->event_weight[i]);
		if (s->vm.counter.freq)
			fputc('\n', out);
		else
			fprintf(out, ", one in %" PRIu64 "%s\n", s->vm.period,
				has_unit_ns(&s->vm) ? " ns" : "");
	}
	for (unsigned int i = 0; (s = events_of_vm(ev, i)); i++) {
		struct vm_counter_stats c = counter_sum(vm, i);

		print_counter(s->name.text, &c, out);
	}
	for (unsigned int i = 0; i < ev->n; i++)
		if (*ev->at[i].why)
			fprintf(out, "kvmprof: note: event %s: %s\n", ev->at[i].asked,
				ev->at[i].why);
}

static void json_text(struct buf *b, const char *key, const char *text)
{
	buf_printf(b, ",\"%s\":", key);
	json_quote(b, text);
}

void summary_events_json(const struct events *ev, const struct vm *vm,
			 const struct pipeline_stats *p, struct buf *b)
{
	unsigned int n = 0;

	buf_printf(b, ",\"events\":[");
	for (unsigned int i = 0; i < ev->n; i++) {
		const struct event_state *s = &ev->at[i];

		buf_printf(b, "%s{\"asked\":", i ? "," : "");
		json_quote(b, s->asked);
		if (*s->why)
			json_text(b, "why", s->why);
		if (!s->dropped) {
			json_text(b, "name", s->name.text);
			json_text(b, "unit", has_unit_ns(&s->vm) ? "ns" : "count");
			buf_printf(b,
				   ",\"%s\":%" PRIu64 ",\"samples\":%" PRIu64
				   ",\"weight\":%" PRIu64,
				   s->vm.counter.freq ? "freq_hz" : "period", s->vm.period,
				   p->event_samples[n], p->event_weight[n]);
			if (s->vm.kind == VM_EVENT_PERF)
				buf_printf(b, ",\"guest_only\":%s",
					   s->vm.counter.exclude_host ? "true" : "false");
			if (has_counter(&s->vm)) {
				struct vm_counter_stats c = counter_sum(vm, n);

				buf_printf(b,
					   ",\"enabled_ns\":%" PRIu64 ",\"running_ns\":%" PRIu64
					   ",\"throttled\":%" PRIu64 ",\"records_lost\":%" PRIu64,
					   c.enabled_ns, c.running_ns, c.throttled, c.lost);
			}
			n++;
		}
		buf_printf(b, "}");
	}
	buf_printf(b, "]");
}

void summary_devices_json(const struct vm *vm, struct buf *b)
{
	struct vm_device d;

	buf_printf(b, ",\"devices\":[");
	for (unsigned int i = 0; vm_device(vm, i, &d); i++) {
		buf_printf(b, "%s{\"name\":", i ? "," : "");
		json_quote(b, d.name);
		buf_printf(b, ",\"ports\":[%u,%u],\"exits\":%" PRIu64 ",\"accesses\":%" PRIu64 "}",
			   d.base, d.base + d.count - 1u, d.exits, d.accesses);
	}
	buf_printf(b, "]");
}

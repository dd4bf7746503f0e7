/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/ctl.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static double ctl_number(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

static long long ctl_count(const json_t *o, const char *key)
{
	return (long long)json_integer_value(json_object_get(o, key));
}

static const char *ctl_text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static bool is_on(const json_t *o, const char *key)
{
	return json_is_true(json_object_get(o, key));
}

static double ctl_us(const json_t *hist, const char *key)
{
	return ctl_number(hist, key) / 1e3;
}

/* -- status --------------------------------------------------------------------------- */

static void print_events(const json_t *events)
{
	const json_t *ev;
	size_t i;

	json_array_foreach(events, i, ev)
	{
		const char *unit = ctl_text(ev, "unit");
		double period = ctl_number(ev, "period");

		printf("event      %s: %s, ", ctl_text(ev, "name"),
		       is_on(ev, "armed") ? "armed" : "disarmed");
		if (!strcmp(unit, "hz"))
			printf("%.0f a second", period);
		else
			printf("period %.0f%s", period, strcmp(unit, "ns") ? "" : " ns");
		if (!strcmp(unit, "ns") && period > 0)
			printf(" (%.6g Hz)", 1e9 / period);
		printf(", %lld samples\n", ctl_count(ev, "samples"));
	}
}

static void print_vcpus(const json_t *vcpus)
{
	const json_t *v;
	size_t i;

	printf("\n%5s %10s %9s %9s %9s %9s %7s %8s %12s\n", "vCPU", "collecting", "samples",
	       "kernel", "user", "idle", "lost", "missed", "stopped p99");
	json_array_foreach(vcpus, i, v)
	{
		printf("%5lld %10s %9lld %9lld %9lld %9lld %7lld %8lld %9.1f us\n",
		       ctl_count(v, "vcpu"), is_on(v, "collecting") ? "yes" : "no",
		       ctl_count(v, "samples"), ctl_count(v, "kernel"), ctl_count(v, "user"),
		       ctl_count(v, "idle"), ctl_count(v, "lost"), ctl_count(v, "overruns"),
		       ctl_us(json_object_get(v, "stopped_ns"), "p99"));
	}
}

static void print_status(const json_t *r)
{
	const json_t *stop = json_object_get(r, "stopped_ns");
	const json_t *latency = json_object_get(r, "latency_ns");

	printf("state      %s, %.1f s%s\n", ctl_text(r, "state"), ctl_number(r, "elapsed_ns") / 1e9,
	       is_on(r, "collecting") ? "" : ", not collecting");
	print_events(json_object_get(r, "events"));
	printf("samples    %lld, %.1f a second; lost %lld, overwritten %lld\n",
	       ctl_count(r, "samples"), ctl_number(r, "rate_hz"), ctl_count(r, "lost"),
	       ctl_count(r, "overwritten"));
	printf("periods    %lld missed, %lld while not collecting\n",
	       ctl_count(r, "overruns"), ctl_count(r, "uncollected"));
	printf("stopped    p50 %.1f us, p99 %.1f us, max %.1f us; kick latency p50 %.1f us, p99 "
	       "%.1f us\n",
	       ctl_us(stop, "p50"), ctl_us(stop, "p99"), ctl_us(stop, "max"),
	       ctl_us(latency, "p50"), ctl_us(latency, "p99"));
	printf("stacks     up to %lld bytes each, %lld frames\n", ctl_count(r, "stack_size"),
	       ctl_count(r, "max_stack"));
	printf("changes    %lld; snapshots %lld\n", ctl_count(r, "changes"),
	       ctl_count(r, "snapshots"));
	printf("memory     %.1f MiB resident, with the guest's\n",
	       ctl_number(r, "rss_bytes") / (1 << 20));
	print_vcpus(json_object_get(r, "vcpus"));
}

/* -- others --------------------------------------------------------------------------- */

static void print_stats(const json_t *r)
{
	const json_t *v, *n;
	const char *kind;
	size_t i;

	json_array_foreach(json_object_get(r, "vcpus"), i, v)
	{
		const json_t *stop = json_object_get(v, "stopped_ns");

		printf("vCPU %lld\n", ctl_count(v, "vcpu"));
		json_object_foreach((json_t *)json_object_get(v, "exits"), kind, n)
			printf("  %-24s %12lld\n", kind, (long long)json_integer_value(n));
		printf("  stopped: %lld times, p50 %.1f us, p99 %.1f us, max %.1f us\n",
		       ctl_count(stop, "count"), ctl_us(stop, "p50"), ctl_us(stop, "p99"),
		       ctl_us(stop, "max"));
		printf("  stack copies cut: %lld at the limit, %lld at an unmapped page, %lld "
		       "unreadable\n",
		       ctl_count(v, "stack_capped"), ctl_count(v, "stack_unmapped"),
		       ctl_count(v, "stack_unreadable"));
	}
}

static void print_value(const json_t *v)
{
	const json_t *x;
	size_t i;

	if (json_is_boolean(v))
		fputs(json_is_true(v) ? "on" : "off", stdout);
	else if (json_is_integer(v))
		printf("%lld", (long long)json_integer_value(v));
	json_array_foreach(v, i, x)
		printf("%s%s", i ? "," : "", json_string_value(x) ? json_string_value(x) : "?");
	if (json_is_array(v) && !json_array_size(v))
		fputs("none", stdout);
}

static void print_change(const char *command, const json_t *r)
{
	const json_t *vcpu = json_object_get(r, "vcpu");

	fputs(command, stdout);
	if (*ctl_text(r, "event"))
		printf(" %s", ctl_text(r, "event"));
	if (json_is_string(vcpu))
		printf(" %s", json_string_value(vcpu));
	else if (vcpu)
		printf(" %lld", ctl_count(r, "vcpu"));
	fputs(": ", stdout);
	print_value(json_object_get(r, "from"));
	fputs(" -> ", stdout);
	print_value(json_object_get(r, "to"));
	putchar('\n');
}

void ctl_print(const char *command, const json_t *reply)
{
	if (!strcmp(command, "status"))
		print_status(reply);
	else if (!strcmp(command, "stats"))
		print_stats(reply);
	else if (!strcmp(command, "snapshot"))
		printf("wrote %s: %lld samples so far, in %.1f ms; %lld lost meanwhile\n",
		       ctl_text(reply, "path"), ctl_count(reply, "samples"),
		       ctl_number(reply, "took_ns") / 1e6, ctl_count(reply, "lost"));
	else if (!strcmp(command, "mark"))
		printf("marked %s\n", ctl_text(reply, "name"));
	else if (!strcmp(command, "stop"))
		puts("the run ends");
	else
		print_change(command, reply);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/ctl.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static double cmd_ctl_print_number(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

static long long cmd_ctl_print_count(const json_t *o, const char *key)
{
	return (long long)json_integer_value(json_object_get(o, key));
}

static const char *cmd_ctl_print_text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static bool is_on(const json_t *o, const char *key)
{
	return json_is_true(json_object_get(o, key));
}

static double cmd_ctl_print_us(const json_t *hist, const char *key)
{
	return cmd_ctl_print_number(hist, key) / 1e3;
}

/* -- status --------------------------------------------------------------------------- */

static void print_events(const json_t *events)
{
	const json_t *ev;
	size_t i;

	json_array_foreach(events, i, ev)
	{
		const char *unit = cmd_ctl_print_text(ev, "unit");
		double period = cmd_ctl_print_number(ev, "period");

		printf("event      %s: %s, ", cmd_ctl_print_text(ev, "name"),
		       is_on(ev, "armed") ? "armed" : "disarmed");
		if (!strcmp(unit, "hz"))
			printf("%.0f a second", period);
		else
			printf("period %.0f%s", period, strcmp(unit, "ns") ? "" : " ns");
		if (!strcmp(unit, "ns") && period > 0)
			printf(" (%.6g Hz)", 1e9 / period);
		printf(", %lld samples\n", cmd_ctl_print_count(ev, "samples"));
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
		       cmd_ctl_print_count(v, "vcpu"), is_on(v, "collecting") ? "yes" : "no",
		       cmd_ctl_print_count(v, "samples"), cmd_ctl_print_count(v, "kernel"),
		       cmd_ctl_print_count(v, "user"), cmd_ctl_print_count(v, "idle"),
		       cmd_ctl_print_count(v, "lost"), cmd_ctl_print_count(v, "overruns"),
		       cmd_ctl_print_us(json_object_get(v, "stopped_ns"), "p99"));
	}
}

static void print_status(const json_t *r)
{
	const json_t *stop = json_object_get(r, "stopped_ns");
	const json_t *latency = json_object_get(r, "latency_ns");

	printf("state      %s, %.1f s%s\n", cmd_ctl_print_text(r, "state"),
	       cmd_ctl_print_number(r, "elapsed_ns") / 1e9,
	       is_on(r, "collecting") ? "" : ", not collecting");
	print_events(json_object_get(r, "events"));
	printf("samples    %lld, %.1f a second; lost %lld, overwritten %lld\n",
	       cmd_ctl_print_count(r, "samples"), cmd_ctl_print_number(r, "rate_hz"),
	       cmd_ctl_print_count(r, "lost"), cmd_ctl_print_count(r, "overwritten"));
	printf("periods    %lld missed, %lld while not collecting\n",
	       cmd_ctl_print_count(r, "overruns"), cmd_ctl_print_count(r, "uncollected"));
	printf("stopped    p50 %.1f us, p99 %.1f us, max %.1f us; kick latency p50 %.1f us, p99 "
	       "%.1f us\n",
	       cmd_ctl_print_us(stop, "p50"), cmd_ctl_print_us(stop, "p99"),
	       cmd_ctl_print_us(stop, "max"), cmd_ctl_print_us(latency, "p50"),
	       cmd_ctl_print_us(latency, "p99"));
	printf("stacks     up to %lld bytes each, %lld frames\n",
	       cmd_ctl_print_count(r, "stack_size"), cmd_ctl_print_count(r, "max_stack"));
	printf("changes    %lld; snapshots %lld\n", cmd_ctl_print_count(r, "changes"),
	       cmd_ctl_print_count(r, "snapshots"));
	printf("memory     %.1f MiB resident, with the guest's\n",
	       cmd_ctl_print_number(r, "rss_bytes") / (1 << 20));
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

		printf("vCPU %lld\n", cmd_ctl_print_count(v, "vcpu"));
		json_object_foreach((json_t *)json_object_get(v, "exits"), kind, n)
			printf("  %-24s %12lld\n", kind, (long long)json_integer_value(n));
		printf("  stopped: %lld times, p50 %.1f us, p99 %.1f us, max %.1f us\n",
		       cmd_ctl_print_count(stop, "count"), cmd_ctl_print_us(stop, "p50"),
		       cmd_ctl_print_us(stop, "p99"), cmd_ctl_print_us(stop, "max"));
		printf("  stack copies cut: %lld at the limit, %lld at an unmapped page, %lld "
		       "unreadable\n",
		       cmd_ctl_print_count(v, "stack_capped"),
		       cmd_ctl_print_count(v, "stack_unmapped"),
		       cmd_ctl_print_count(v, "stack_unreadable"));
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
	if (*cmd_ctl_print_text(r, "event"))
		printf(" %s", cmd_ctl_print_text(r, "event"));
	if (json_is_string(vcpu))
		printf(" %s", json_string_value(vcpu));
	else if (vcpu)
		printf(" %lld", cmd_ctl_print_count(r, "vcpu"));
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
		       cmd_ctl_print_text(reply, "path"), cmd_ctl_print_count(reply, "samples"),
		       cmd_ctl_print_number(reply, "took_ns") / 1e6,
		       cmd_ctl_print_count(reply, "lost"));
	else if (!strcmp(command, "mark"))
		printf("marked %s\n", cmd_ctl_print_text(reply, "name"));
	else if (!strcmp(command, "stop"))
		puts("the run ends");
	else
		print_change(command, reply);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_ctl: `kvmprof ctl`: commands of the control socket, and replies as people read them.
 */
#include "profile/cmd/cmd.h"

#include "base/cleanup.h"
#include "base/number.h"
#include "profile/cmd/common.h"
#include "profile/record/control/client.h"
#include "profile/record/control/path.h"
#include "profile/record/control/request.h"

#include <errno.h>
#include <float.h>
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
	printf("periods    %lld missed, %lld while not collecting\n", ctl_count(r, "overruns"),
	       ctl_count(r, "uncollected"));
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

/* The reply to the command of that name; what it lacks is left out or 0. */
static void ctl_print(const char *command, const json_t *reply)
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

/* -- from words to a request ------------------------------------------------------------ */

static int request_refuse(const char *command, const char *what, const char *arg)
{
	fprintf(stderr, "kvmprof ctl: %s: %s '%s'; see `kvmprof ctl --help`\n", command, what, arg);
	return 2;
}

/* Returns 2 after a message. */
static int request_put_switch(json_t *q, const char *command, const char *arg)
{
	if (strcmp(arg, "on") && strcmp(arg, "off"))
		return request_refuse(command, "expected on or off, not", arg);
	json_object_set_new(q, "on", json_boolean(!strcmp(arg, "on")));
	return 0;
}

static int request_put_whole(json_t *q, const char *command, const char *key, const char *arg)
{
	uint64_t v;

	if (!number_whole(arg, 0, INT64_MAX, &v))
		return request_refuse(command, "expected a whole number, not", arg);
	json_object_set_new(q, key, json_integer((json_int_t)v));
	return 0;
}

static int request_put_period(json_t *q, const char *command, const char *arg)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} unit[] = {
		{ "", 1 }, { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 }
	};
	const char *end = arg;
	uint64_t v;

	if (number_digits(&end, INT64_MAX, &v))
		for (size_t i = 0; i < ARRAY_SIZE(unit); i++)
			if (!strcmp(end, unit[i].name) && v <= INT64_MAX / unit[i].ns) {
				json_object_set_new(q, "value",
						    json_integer((json_int_t)(v * unit[i].ns)));
				return 0;
			}
	return request_refuse(command, "expected a number, such as 1000000 or 2ms, not", arg);
}

static int request_put_hz(json_t *q, const char *command, const char *arg)
{
	double v;

	if (!number_hz(arg, DBL_MIN, 1e9, &v))
		return request_refuse(command, "expected samples a second, not", arg);
	json_object_set_new(q, "value", json_real(v));
	return 0;
}

static int request_put_vcpu(json_t *q, const char *command, const char *arg)
{
	if (strcmp(arg, "all"))
		return request_put_whole(q, command, "vcpu", arg);
	json_object_set_new(q, "vcpu", json_string(arg));
	return 0;
}

static int request_put_text(json_t *q, const char *command, const char *key, const char *arg)
{
	json_t *s = json_string(arg);

	/* jansson makes no strings of other bytes. */
	if (!s)
		return request_refuse(command, "not a name in UTF-8:", arg);
	json_object_set_new(q, key, s);
	return 0;
}

static int request_put_events(json_t *q, const char *command, char *arg)
{
	json_t *list = json_array();
	char *save = NULL;

	for (char *s = strtok_r(arg, ",", &save); s; s = strtok_r(NULL, ",", &save))
		json_array_append_new(list, json_string(s));
	json_object_set_new(q, "events", list);
	return json_array_size(list) ? 0 : request_refuse(command, "expected events, not", arg);
}

/* The server has a directory of its own. */
static int request_put_path(json_t *q, const char *command, const char *arg)
{
	cleanup_free char *here = *arg == '/' ? NULL : getcwd(NULL, 0);
	cleanup_free char *path = NULL;

	if (!*arg)
		return request_refuse(command, "expected a path, not", arg);
	if (*arg == '/')
		return request_put_text(q, command, "path", arg);
	if (!here || asprintf(&path, "%s/%s", here, arg) < 0) {
		path = NULL;
		return request_refuse(command, "cannot tell where this is:", arg);
	}
	return request_put_text(q, command, "path", path);
}

static const struct ctl_command {
	const char *name;
	int args;
	const char *expects;
} commands[] = {
	{ "status", 0, "no argument" },
	{ "stats", 0, "no argument" },
	{ "collect", 1, "on or off" },
	{ "vcpu", 2, "a vCPU or all, and on or off" },
	{ "arm", 1, "an event" },
	{ "disarm", 1, "an event" },
	{ "event", 1, "events" },
	{ "period", 2, "an event and a number" },
	{ "freq", 2, "an event and a rate" },
	{ "stack-size", 1, "bytes" },
	{ "max-stack", 1, "frames" },
	{ "snapshot", 1, "a path" },
	{ "mark", 1, "a name" },
	{ "stop", 0, "no argument" },
};

static int request_put_arguments(json_t *q, const char *c, char **arg)
{
	int ret = 0;

	if (!strcmp(c, "collect"))
		return request_put_switch(q, c, arg[0]);
	if (!strcmp(c, "vcpu")) {
		ret = request_put_vcpu(q, c, arg[0]);
		return ret ? ret : request_put_switch(q, c, arg[1]);
	}
	if (!strcmp(c, "arm") || !strcmp(c, "disarm"))
		return request_put_text(q, c, "event", arg[0]);
	if (!strcmp(c, "event"))
		return request_put_events(q, c, arg[0]);
	if (!strcmp(c, "period") || !strcmp(c, "freq")) {
		ret = request_put_text(q, c, "event", arg[0]);
		return ret	   ? ret
		       : *c == 'p' ? request_put_period(q, c, arg[1])
				   : request_put_hz(q, c, arg[1]);
	}
	if (!strcmp(c, "stack-size"))
		return request_put_whole(q, c, "bytes", arg[0]);
	if (!strcmp(c, "max-stack"))
		return request_put_whole(q, c, "frames", arg[0]);
	if (!strcmp(c, "snapshot"))
		return request_put_path(q, c, arg[0]);
	if (!strcmp(c, "mark"))
		return request_put_text(q, c, "name", arg[0]);
	return 0;
}

/* Returns 2 after a message. *out is the caller's. */
static int request_make(json_t **out, int argc, char **argv)
{
	const struct ctl_command *c = NULL;
	int ret;

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(argv[0], commands[i].name))
			c = &commands[i];
	if (!c) {
		fprintf(stderr, "kvmprof ctl: unknown command '%s'; see `kvmprof ctl --help`\n",
			argv[0]);
		return 2;
	}
	if (argc - 1 != c->args) {
		fprintf(stderr, "kvmprof ctl: %s: expected %s; see `kvmprof ctl --help`\n", c->name,
			c->expects);
		return 2;
	}
	*out = json_object();
	json_object_set_new(*out, "cmd", json_string(c->name));
	ret = request_put_arguments(*out, c->name, argv + 1);
	if (ret)
		json_decref(*out);
	return ret;
}

/* -- the run ---------------------------------------------------------------------------- */

static int ctl_list_runs(void)
{
	pid_t pid[CONTROL_MAX_FOUND];
	unsigned int n = control_find(pid);

	for (unsigned int i = 0; i < n; i++) {
		char path[CONTROL_PATH_MAX];

		if (!control_path_of(path, pid[i], CONTROL_MISSING_FAILS, NULL))
			printf("%ld %s\n", (long)pid[i], path);
	}
	return 0;
}

static int ctl_hello(struct control_client *c, struct err *e)
{
	json_t *reply = NULL;
	int ret = control_client_request(
		c, json_pack("{s:s,s:i}", "cmd", "hello", "version", (int)CONTROL_VERSION), &reply,
		e);

	json_decref(reply);
	return ret;
}

static void ctl_print_json(const json_t *reply)
{
	cleanup_free char *s = json_dumps(reply, JSON_COMPACT);

	puts(s ? s : "");
}

/* request is taken over. */
static int ctl_ask(const char *path, json_t *request, const char *command, bool as_json)
{
	struct control_client *c = NULL;
	json_t *reply = NULL;
	struct err e = { 0 };
	int ret = control_client_open(&c, path, &e);

	ret = ret ? ret : ctl_hello(c, &e);
	if (ret)
		json_decref(request);
	else
		ret = control_client_request(c, request, &reply, &e);
	control_client_close(c);
	if (ret && as_json) {
		reply = json_pack("{s:b,s:s}", "ok", 0, "error", e.text);
		ctl_print_json(reply);
	} else if (ret) {
		fprintf(stderr, "kvmprof ctl: %s\n", e.text);
	} else if (as_json) {
		ctl_print_json(reply);
	} else {
		ctl_print(command, reply);
	}
	json_decref(reply);
	return ret ? 1 : 0;
}

struct ctl_options {
	const char *control;
	unsigned int pid; /* 0: not given */
	bool json;
};

#define OPTION_STRUCT struct ctl_options

static const struct option_row rows[] = {
	{ "control", 0, "PATH", "the run's socket", OPTION_TEXT_OF(control, "a path") },
	{ "pid", 'p', "PID",
	  "the run with this process id, started with --control auto;\n"
	  "without either: the only run",
	  OPTION_WHOLE(pid, 1, INT32_MAX, "a process id") },
	{ "json", 0, NULL, "print the reply unchanged, on one line", OPTION_PUT(json, true) },
	OPTION_HELP,
	{ 0 },
};

static const struct option_set set = {
	.usage = "Usage: kvmprof ctl [-p PID | --control PATH] [--json] COMMAND [ARGUMENT...]\n"
		 "\n"
		 "Watch and change a running guest that was started with `kvmprof run --control`.\n"
		 "\n",
	.after = "\n"
		 "Commands:\n"
		 "    list                   the runs that were started with --control auto\n"
		 "    status                 state, samples, losses, costs\n"
		 "    stats                  exits and stopped time of each vCPU\n"
		 "    collect on|off         take samples, or pause; events stay armed\n"
		 "    vcpu N|all on|off      the same for one vCPU\n"
		 "    arm EVENT              sample this event; disarm EVENT: stop it, so that it "
		 "costs nothing\n"
		 "    event EVENT[,EVENT]    arm these, disarm all others\n"
		 "    period EVENT VALUE     length of a period: ns, or with us, ms or s; else a "
		 "count\n"
		 "    freq EVENT HZ          the same as samples a second\n"
		 "    stack-size BYTES       copy at most BYTES of each stack\n"
		 "    max-stack N            keep the innermost N frames of each stack\n"
		 "    snapshot PATH          write the profile so far, and continue\n"
		 "    mark NAME              add a marker to the profile\n"
		 "    stop                   end the run\n",
	.rows = rows,
	.column = 26,
};

int cmd_ctl(int argc, char **argv)
{
	char found[CONTROL_PATH_MAX];
	struct ctl_options o = { 0 };
	json_t *request = NULL;
	struct err e = { 0 };
	int ret = cmd_options(&set, &o, argc, argv);

	if (ret >= 0)
		return ret;
	if (o.control && o.pid)
		return cmd_wrong(argv, "--control and -p both select a run: drop one");
	if (optind == argc)
		return cmd_wrong(argv, "expected a command");
	if (!strcmp(argv[optind], "list") && optind + 1 == argc)
		return ctl_list_runs();
	ret = request_make(&request, argc - optind, argv + optind);
	if (ret)
		return ret;
	if (!o.control) {
		ret = o.pid ? control_path_of(found, (pid_t)o.pid, CONTROL_MISSING_FAILS, &e)
			    : control_path_only(found, &e);
		o.control = found;
	}
	if (ret) {
		json_decref(request);
		fprintf(stderr, "kvmprof ctl: %s\n", e.text);
		return 1;
	}
	return ctl_ask(o.control, request, argv[optind], o.json);
}

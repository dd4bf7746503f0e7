/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/options/options.h"

#include "base/cleanup.h"
#include "base/number.h"
#include "profile/record/options/devices.h"
#include "profile/record/options/exact.h"
#include "profile/record/options/habits.h"
#include "profile/record/options/machine.h"
#include "symbolizer/core/stack.h"
#include "vmm/layout.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define OPTION_STRUCT struct run_options

/* the most samples, and the longest period; exactly representable as a double */
#define WHOLE_MAX 1000000000000000u

int run_options_wrong(const struct run_options *o, const char *fmt, ...)
{
	cleanup_free char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	reporter_printf(o->reporter, "kvmprof %s: %s; see `kvmprof %s --help`\n", o->command,
			n < 0 ? "out of memory" : text, o->command);
	return 2;
}

/* -- the options ---------------------------------------------------------------------------- */

static int parse_memory(void *at, char *arg, struct err *e)
{
	struct run_options *o = at;
	uint64_t size;

	(void)e;
	if (!number_size(arg, &size) || size < RUN_MEM_MIN)
		return -EINVAL;
	o->mem_size = size;
	o->mem_given = true;
	return 0;
}

static int parse_vcpus(void *at, char *arg, struct err *e)
{
	struct run_options *o = at;
	uint64_t n;

	(void)e;
	if (!number_whole(arg, 1, VM_MAX_VCPUS, &n))
		return -EINVAL;
	o->vcpus = (unsigned int)n;
	o->vcpus_given = true;
	return 0;
}

static int parse_event(void *at, char *arg, struct err *e)
{
	return events_add(at, arg, e);
}

static int add_mark(const char **list, unsigned int *n, const char *arg, struct err *e)
{
	if (*n == RUN_MARKS_MAX)
		return err_set(e, E2BIG, "'%.150s': more than %u marks", arg, RUN_MARKS_MAX);
	list[(*n)++] = arg;
	return 0;
}

static int parse_mark(void *at, char *arg, struct err *e)
{
	struct run_options *o = at;

	return add_mark(o->mark_on, &o->nmark_on, arg, e);
}

static int parse_mark_at(void *at, char *arg, struct err *e)
{
	struct run_options *o = at;

	return add_mark(o->mark_at, &o->nmark_at, arg, e);
}

static int parse_append(void *at, char *arg, struct err *e)
{
	struct run_options *o = at;

	if (o->nappend == RUN_APPEND_MAX)
		return err_set(e, E2BIG, "'%.150s': given more than %u times", arg, RUN_APPEND_MAX);
	o->append[o->nappend++] = arg;
	return 0;
}

#define EXEC "exec:"

static int parse_action(void *at, char *arg, struct err *e)
{
	struct run_action *a = at;

	(void)e;
	*a = (struct run_action){ 0 };
	if (!strcmp(arg, "why"))
		a->kind = RUN_ACTION_WHY;
	else if (!strcmp(arg, "end"))
		a->kind = RUN_ACTION_END;
	else if (!strncmp(arg, EXEC, strlen(EXEC)) && arg[strlen(EXEC)])
		*a = (struct run_action){ RUN_ACTION_EXEC, arg + strlen(EXEC) };
	else
		return -EINVAL;
	return 0;
}

static int parse_view(void *at, char *arg, struct err *e)
{
	struct run_options *o = at;

	(void)e;
	o->view = arg ? arg : "view.html";
	return 0;
}

const struct option_row run_option_rows[] = {
	OPTION_HEADING("Guest:\n"),
	{ .kind = OPTION_IS_ROWS, .rows = run_exact_rows },
	{ .kind = OPTION_IS_ROWS, .rows = run_kernel_rows },
	{ "memory", 'm', "SIZE", "memory, with K, M or G (default 256M)",
	  OPTION_CALL(parse_memory, "a size of 16M or more, such as 512M or 2G") },
	{ "vcpus", 0, "N", "virtual CPUs, 1 to 64 (default 1)",
	  OPTION_CALL(parse_vcpus, "a whole number from 1 to 64") },
	{ .kind = OPTION_IS_ROWS, .rows = run_host_rows },
	{ "initrd", 0, "FILE", "initial RAM disk", OPTION_TEXT_OF(initrd, "a file") },
	{ "kernel", 0, "FILE", "a kernel in place of the one in the disk image",
	  OPTION_TEXT_OF(kernel, "a file") },
	{ "root", 0, "DEV", "its root file system, such as /dev/vda2 or UUID=...",
	  OPTION_TEXT(root) },
	{ "append", 0, "TEXT", "add to the kernel's command line; may be repeated",
	  OPTION_CALL(parse_append, NULL) },
	{ "cmdline", 0, "TEXT", "replace kvmprof's default command line", OPTION_TEXT(cmdline) },
	{ "no-tune", 0, NULL, "do not add parameters for a slow host", OPTION_PUT(tune, false) },
	{ .kind = OPTION_IS_ROWS, .rows = run_device_rows },
	{ .kind = OPTION_IS_ROWS, .rows = run_disk_rows },
	{ "domain", 0, "DOMAIN",
	  "kernel, RAM disk, command line, memory, vCPUs and raw disks of\n"
	  "a libvirt domain, or of FILE.xml; IMAGE and the options above\n"
	  "take precedence; what kvmprof cannot provide is listed",
	  OPTION_TEXT_OF(domain, "a name or a file") },
	{ "connect", 0, "URI", "libvirt's URI, as for virsh", OPTION_TEXT(connect) },
	OPTION_HEADING("\n"),
	{ .kind = OPTION_IS_ROWS, .rows = run_snapshot_rows },
	{ .kind = OPTION_IS_ROWS, .rows = run_exec_rows },
	OPTION_HEADING("When to sample, and when to stop:\n"),
	{ "duration", 0, "SECONDS",
	  "stop after this time (default: when the guest ends), from\n"
	  "the guest's first instruction or from where sampling begins",
	  OPTION_SECONDS(duration_s, 0.001, 1e7,
			 "seconds, more than 0, or a time such as 500ms, 90s, 5m or 1h") },
	{ "reboot", 0, NULL,
	  "boot again when the guest resets itself (default: end);\n"
	  "each boot starts as after power-on",
	  OPTION_PUT(reboot, true) },
	{ "delay", 0, "SECONDS", "begin to sample after this time",
	  OPTION_SECONDS(delay_s, 0, 1e7, "seconds, or a time such as 500ms, 90s, 5m or 1h") },
	{ "samples", 0, "N", "stop after N samples",
	  OPTION_WHOLE(max_samples, 1, WHOLE_MAX, "a whole number from 1 on") },
	{ "start-on", 0, "REGEX", "begin when a line of the console matches (POSIX extended)",
	  OPTION_TEXT(start_on) },
	{ "stop-on", 0, "REGEX", "stop when one matches after that", OPTION_TEXT(stop_on) },
	{ "start-at", 0, "PLACE",
	  "begin when this instruction is reached: NAME, NAME+OFFSET or\n"
	  "0xADDRESS; of several functions of the name NAME@FILE or\n"
	  "NAME#2, the second by address; NAME#all: the first reached",
	  OPTION_TEXT(start_at) },
	{ "stop-at", 0, "PLACE", "stop when it is reached after that", OPTION_TEXT(stop_at) },
	{ "mark", 0, "[NAME=]REGEX", "record a marker at each line that matches; may be repeated",
	  OPTION_CALL(parse_mark, NULL) },
	{ "mark-at", 0, "PLACE",
	  "record a marker each time that it is reached, with the\n"
	  "stack; NAME#all: all functions with this name",
	  OPTION_CALL(parse_mark_at, NULL) },
	OPTION_HEADING("\nWhen the guest fails:\n"),
	{ "on-hang", 0, "ACTION",
	  "when the guest hangs: why (print the reason, as `kvmprof why`\n"
	  "does), end (print it and end the run), or exec:COMMAND (execute\n"
	  "COMMAND in a shell, with KVMPROF_VERDICT and others in its\n"
	  "environment)",
	  OPTION_CALL_AT(parse_action, alarm.on_hang, "why, end, or exec:COMMAND") },
	{ "on-panic", 0, "ACTION", "the same when the guest's kernel panics, or has an oops",
	  OPTION_CALL_AT(parse_action, alarm.on_panic, "why, end, or exec:COMMAND") },
	{ "hang-after", 0, "SECONDS", "what has made no progress for so long hangs (default 10)",
	  OPTION_SECONDS(alarm.hang_s, 0.1, 86400, "0.1 to 86400 seconds") },
	OPTION_HEADING("\nSampling:\n"),
	{ "event", 'e', "LIST",
	  "the events to sample, such as cpu,cycles:u,exit:io (default wall);\n"
	  "`kvmprof list` has the events of this host",
	  OPTION_CALL_AT(parse_event, events, NULL) },
	{ "freq", 'F', "HZ", "samples a second on each vCPU (default 997); 10k is 10000",
	  OPTION_HZ(freq_hz, 0.1, RUN_FREQ_MAX, "0.1 to 50000 samples a second") },
	{ "count", 'c', "N", "one sample per N counts or exits, instead of --freq",
	  OPTION_WHOLE(period, 1, WHOLE_MAX, "a whole number from 1 on") },
	{ "strict-event", 0, NULL,
	  "an event that this host refuses is an error; without it\n"
	  "another one may replace it, which a line reports",
	  OPTION_PUT(strict_event, true) },
	{ "no-jitter", 0, NULL, "sample strictly periodically, which can alias with the guest",
	  OPTION_PUT(jitter, false) },
	{ "max-overhead", 0, "PCT",
	  "sample less often when sampling takes more of the guest's time",
	  OPTION_REAL(max_overhead, 0.001, 100, "a percentage, 0.001 to 100") },
	{ "stack-size", 0, "BYTES", "copy at most BYTES of a stack, up to 16384 (default)",
	  OPTION_WHOLE(stack_size, 256, RUN_STACK_MAX, "256 to 16384 bytes") },
	{ "max-stack", 0, "N", "keep the innermost N frames of a stack, up to 256 (default)",
	  OPTION_WHOLE(max_stack, 1, STACK_MAX_FRAMES, "1 to 256 frames") },
	{ "cpu", 'C', "LIST", "sample these vCPUs only, such as 0,2-3 (default: all)",
	  OPTION_TEXT(vcpu_list) },
	{ "ring-size", 0, "SIZE",
	  "buffer for samples of each vCPU, with K, M or G\n"
	  "(default 4M); with --overwrite: for all that are kept",
	  OPTION_SIZE(ring_size, RUN_RING_MIN, RUN_RING_MAX, "256K to 4G, such as 16M") },
	{ "overwrite", 0, NULL,
	  "keep the newest samples, and discard the oldest when memory is full",
	  OPTION_PUT(overwrite, true) },
	{ "control", 0, "PATH", "listen on this socket for `kvmprof ctl`; auto: see there",
	  OPTION_TEXT_OF(control, "a path") },
	{ "symbols", 0, "FILE",
	  "names from a vmlinux, System.map, kallsyms or nm output;\n"
	  "live: from the running kernel's memory only",
	  OPTION_TEXT_OF(symbols, "a file") },
	{ "guest-root", 0, "DIR", "the guest's file system: names of its programs, JIT maps",
	  OPTION_TEXT_OF(guest_root, "a directory") },
	{ "debuginfo", 0, "DIR", "debug files of its programs, by build id",
	  OPTION_TEXT_OF(debuginfo, "a directory") },
	{ "mem", 0, NULL, "also record the memory that sampled instructions use: kvmprof mem",
	  OPTION_PUT(mem, true) },
	{ "python", 0, NULL, "also the functions of Python that CPython 3.11 to 3.13 runs",
	  OPTION_PUT(python, true) },
	{ "off-cpu", 0, NULL,
	  "also sample the tasks that do not run, where they wait: event\n"
	  "off-cpu, see `kvmprof flamegraph --event off-cpu`",
	  OPTION_PUT(tasks.off_cpu, true) },
	{ "off-cpu-period", 0, "MS", "read the list of tasks every MS milliseconds (default 100)",
	  OPTION_REAL(tasks.off_cpu_ms, OFFCPU_PERIOD_MIN_MS, OFFCPU_PERIOD_MAX_MS,
		      "1 to 60000 milliseconds") },
	OPTION_HEADING("\nOutput:\n"),
	{ "output", 'o', "PATH",
	  "profile (default perf.data; an existing one becomes .old);\n"
	  "-: at the end to standard output, for `perf report -i -`,\n"
	  "with the guest's console on standard error",
	  OPTION_TEXT_OF(output, "a path") },
	{ "view", 0, "[=FILE]", "at the end also write the page of `kvmprof view' (view.html)",
	  OPTION_CALL(parse_view, NULL) },
	{ "no-output", 0, NULL, "no profile: for --control, --ps-at-end, --snapshot-save",
	  OPTION_PUT(output, 0) },
	{ "single-file", 0, NULL, "one file plus the build-id cache, not a directory",
	  OPTION_PUT(single_file, true) },
	{ "buildid-dir", 0, "DIR", "build-id cache (default ~/.debug)",
	  OPTION_TEXT_OF(buildid_dir, "a directory") },
	{ "no-buildid-cache", 0, NULL, "write nothing outside of PATH",
	  OPTION_PUT(buildid_cache, false) },
	{ "json", 0, NULL, "the summary as JSON on stdout; the console is not shown",
	  OPTION_PUT(json, true) },
	{ "ps-at-end", 0, NULL, "list the guest's tasks, and where they wait, when it ends",
	  OPTION_PUT(tasks.ps_at_end, true) },
	{ "sandbox", 0, "MODE",
	  "drop rights before the guest runs: on (default), log (report\n"
	  "system calls that are not allowed, but allow them), off, or\n"
	  "strict (like on, but fail if the host lacks a part of it)",
	  OPTION_WORD(sandbox, sandbox_mode_names) },
	{ "no-status", 0, NULL, "no status line on the terminal while it runs",
	  OPTION_PUT(tasks.no_status, true) },
	{ "no-summary", 0, NULL, "at the end print warnings and failures only",
	  OPTION_PUT(summary, false) },
	{ "quiet", 'q', NULL, "show neither the guest's console nor the status line",
	  OPTION_PUT(quiet, true) },
	OPTION_HELP,
	{ 0 },
};

/* Notes the first option that is about the machine, which a snapshot has already, or about KVM. */
static void note_option(void *at, const struct option_row *row)
{
	struct run_options *o = at;

	if (!o->of_machine && !run_options_snapshot_accepts(row->name))
		o->of_machine = row->name;
	if (!o->of_kvm && !run_options_exact_accepts(row->name))
		o->of_kvm = row->name;
}

static const struct option_set run_set = {
	.usage = "Usage: kvmprof run [OPTIONS] [IMAGE] [-- COMMAND ARG...]\n"
		 "\n"
		 "Boot a kernel under KVM, sample it from outside, write a profile that perf "
		 "opens.\n"
		 "IMAGE is a Linux bzImage, a unified kernel image, a vmlinux or another kernel "
		 "(ELF,\n"
		 "multiboot, PVH: see `kvmprof help kernels`), or a disk image with a Linux on it, "
		 "which is\n"
		 "not changed; without it the embedded demo guest runs.\n"
		 "\n",
	.rows = run_option_rows,
	.column = RUN_OPTIONS_COLUMN,
	.seen = note_option,
	.habits = run_option_habits,
};

uint64_t run_options_vcpus(const struct run_options *o, unsigned int vcpus)
{
	uint64_t all = vcpus < 64 ? (UINT64_C(1) << vcpus) - 1 : UINT64_MAX, mask = 0;
	const char *s = o->vcpu_list;
	struct number_range r;
	int ret;

	while ((ret = number_range(&s, vcpus - 1, &r)) > 0)
		for (; r.from <= r.to; r.from++)
			mask |= UINT64_C(1) << r.from;
	if (ret < 0)
		return 0;
	return o->vcpu_list ? mask : all;
}

void run_options_default(struct run_options *o)
{
	*o = (struct run_options){
		.command = "run",
		.reporter = o->reporter,
		.help = o->help,
		.output = "perf.data",
		.freq_hz = 997,
		.mem_size = 256ull << 20,
		.vcpus = 1,
		.boot = BOOT_PROTOCOL_AUTO,
		.numa_node = -1,
		.stack_size = RUN_STACK_MAX,
		.jitter = true,
		.tune = true,
		.summary = true,
		.buildid_cache = true,
	};
}

/* These two check options that fit each other only in part, and return -1 or an exit status. */
static int check_view(const struct run_options *o)
{
	if (o->view && (!o->output || run_options_to_stdout(o)))
		return run_options_wrong(o,
					 "--view shows the profile, which must be a file: drop %s",
					 o->output ? "-o -" : "--no-output");
	if (o->view && o->repeat > 1)
		return run_options_wrong(o, "--view shows one run: drop %s", "--repeat");
	return -1;
}

static int check_kept(struct run_options *o)
{
	struct events_rate rate = run_options_rate(o);
	struct err e = { 0 };

	o->stack_size &= ~7u; /* whole words */
	if (o->overwrite && !o->ring_size)
		o->ring_size = RUN_OVERWRITE_SIZE;
	if (events_check(&o->events, &rate, &e) < 0)
		return run_options_wrong(o, "--count %s", e.text);
	return -1;
}

static int check_tasks(const struct run_options *o)
{
	if (o->tasks.off_cpu_ms > 0 && !o->tasks.off_cpu)
		return run_options_wrong(o, "--off-cpu-period needs --off-cpu: give that, too");
	if (o->tasks.off_cpu && o->gdb)
		return run_options_wrong(
			o, "--off-cpu reads the guest's memory all the time, for which --gdb "
			   "would have to stop it: drop one");
	if (o->tasks.ps_at_end && o->gdb)
		return run_options_wrong(
			o, "--ps-at-end can't read the guest's memory any more with --gdb: "
			   "drop one");
	if (o->tasks.off_cpu && o->events.n >= PROFILE_MAX_EVENTS)
		return run_options_wrong(
			o, "--off-cpu is an event of its own: one event fewer with -e");
	return -1;
}

static int check_alarm(const struct run_options *o)
{
	const char *given = o->alarm.on_hang.kind ? "--on-hang" : "--on-panic";

	if (o->alarm.hang_s > 0 && !o->alarm.on_hang.kind)
		return run_options_wrong(o, "--hang-after needs --on-hang: give that, too");
	if (run_options_has_alarm(o) && o->gdb)
		return run_options_wrong(
			o,
			"%s reads the guest's memory all the time, for which --gdb would have to "
			"stop it: drop one",
			given);
	return -1;
}

int run_options_check(struct run_options *o)
{
	int ret = check_kept(o);

	ret = ret >= 0 ? ret : check_view(o);
	ret = ret >= 0 ? ret : run_options_snapshot_check(o);
	if (ret >= 0)
		return ret;
	ret = check_tasks(o);
	ret = ret >= 0 ? ret : check_alarm(o);
	if (ret >= 0)
		return ret;
	if (run_options_to_stdout(o) && o->json)
		return run_options_wrong(
			o, "-o - and --json both write to standard output: drop %s", "--json");
	if (run_options_to_stdout(o) && !o->buildid_cache)
		return run_options_wrong(o, "-o - needs the build-id cache: drop %s",
					 "--no-buildid-cache");
	if (o->single_file && !o->buildid_cache)
		return run_options_wrong(o, "--single-file needs the build-id cache: drop %s",
					 "--no-buildid-cache");
	return -1;
}

uint64_t run_options_off_cpu_ns(const struct run_options *o)
{
	double ms = o->tasks.off_cpu_ms > 0 ? o->tasks.off_cpu_ms : OFFCPU_PERIOD_MS;

	return o->tasks.off_cpu ? (uint64_t)(ms * 1e6) : 0;
}

int run_options_check_machine(const struct run_options *o)
{
	/* With a snapshot --share gives the current paths of its shares. */
	const char *exec = o->snapshot.from ? NULL : run_options_exec_check(o);
	char why[RUN_DEMO_WHY];
	const char *demo = run_options_demo_check(o, why, sizeof(why));

	if (o->reboot && exec_wanted(&o->exec))
		return run_options_wrong(o, "--exec ends the run by a reset of the guest: drop %s",
					 "--reboot");
	if (demo)
		return run_options_wrong(o, "%s", demo);
	if (exec)
		return run_options_wrong(o, "%s", exec);
	/* The number of vCPUs of a snapshot is known later. */
	if (o->vcpu_list && !o->snapshot.from && run_options_vcpus(o, o->vcpus) == 0)
		return run_options_wrong(o, "--cpu %s: expected vCPUs of this guest, such as 0,2-3",
					 o->vcpu_list);
	if (o->npin && o->npin < o->vcpus)
		return run_options_wrong(o, "--pin: fewer host CPUs than vCPUs%s", "");
	if (o->boot == BOOT_PROTOCOL_BZIMAGE && !o->image && !o->kernel)
		return run_options_wrong(o,
					 "--boot bzimage needs a %s: the demo guest is an ELF file",
					 "bzImage as IMAGE");
	return -1;
}

int run_options_parse_rows(const struct option_set *set, void *at, int argc, char **argv,
			   const struct run_options *o)
{
	struct err e = { 0 };
	int ret = option_parse(set, at, argc, argv, &e);

	if (ret < 0)
		return run_options_wrong(o, "%s", e.text);
	if (ret == OPTION_ASKED_HELP && o->help)
		option_help(set, o->help);
	return ret ? 0 : -1;
}

int run_options_parse(struct run_options *o, int argc, char **argv)
{
	static char name[32]; /* the profile's header reads argv later */
	const char *command = o->command;
	uint64_t size;
	int ret, end;

	run_options_default(o);
	if (command && strcmp(command, "run") != 0) {
		/* A command that shows events, and keeps a profile only on request. */
		o->command = command;
		o->output = NULL;
	}
	snprintf(name, sizeof(name), "kvmprof %s", o->command);
	argv[0] = name;
	/* After "--" comes a command with its own options. */
	for (end = 1; end < argc && strcmp(argv[end], "--") != 0;)
		end++;
	if (end + 1 < argc) {
		o->exec.words = argv + end + 1;
		o->exec.nwords = (unsigned int)(argc - end - 1);
		argc = end;
	}
	ret = run_options_parse_rows(&run_set, o, argc, argv, o);
	if (ret >= 0)
		return ret;
	/* -m and --memory take a size, --mem does not. */
	if (o->mem && optind < argc && access(argv[optind], F_OK) != 0 &&
	    number_size(argv[optind], &size))
		return run_options_wrong(
			o, "--mem takes no value: for the size of memory, say -m %s", argv[optind]);
	if (optind < argc)
		o->image = argv[optind++];
	if (optind < argc)
		return run_options_wrong(o, "unexpected argument '%s': one IMAGE at most",
					 argv[optind]);
	if (o->connect && !o->domain)
		return run_options_wrong(o, "--connect %s: it has no effect without --domain",
					 o->connect);
	/* Checked first: an option that no snapshot supports needs no further message. */
	ret = run_options_snapshot_check(o);
	if (ret >= 0)
		return ret;
	ret = run_options_exact_check(o);
	if (ret >= 0)
		return ret;
	ret = o->domain ? -1 : run_options_check_machine(o);
	return ret >= 0 ? ret : run_options_check(o);
}

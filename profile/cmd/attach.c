/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_attach: `kvmprof attach`: profile a machine that another VMM runs.
 */
#include "profile/cmd/cmd.h"

#include "base/cleanup.h"
#include "profile/cmd/common.h"
#include "profile/record/options/habits.h"
#include "profile/record/run/run.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each sample costs some milliseconds of the whole machine. */
#define GDB_FREQ_HZ 49

struct attach_attach {
	struct run run;
	struct attach_request request;
};

static const char *const techniques[] = {
	[ATTACH_AUTO] = "auto", [ATTACH_BPF] = "bpf", [ATTACH_PTRACE] = "ptrace", NULL
};

#define UNTIL_CONSOLE "console:"

static int parse_until(void *at, char *arg, struct err *e)
{
	struct attach_attach *a = at;

	if (strncmp(arg, UNTIL_CONSOLE, strlen(UNTIL_CONSOLE)) != 0 || !arg[strlen(UNTIL_CONSOLE)])
		return err_set(e, EINVAL, "expected " UNTIL_CONSOLE "REGEX");
	a->run.asked.launch.until = arg + strlen(UNTIL_CONSOLE);
	return 0;
}

#define OPTION_STRUCT struct attach_attach
/* Options with the same meaning as for `kvmprof run`. */
#define AS_RUN(name, text) OPTION_AS(name, text, run_option_rows, run.asked)

static const struct option_row rows[] = {
	OPTION_ROWS(cmd_attach_rows, request),
	{ "vm", 0, "N",
	  "select one of several machines of a process, in the order of\n"
	  "their creation, from 1",
	  OPTION_WHOLE(run.asked.attach_machine, 1, 64, "1 to 64") },
	{ "monitor", 0, NULL,
	  "find the domain's process by a query to its QEMU: libvirt notes\n"
	  "that (the domain is tainted)",
	  OPTION_PUT(request.monitor, true) },
	OPTION_HEADING("\n"),
	{ "technique", 0, "HOW",
	  "bpf: programs of the guest are sampled in an interrupt, by BPF,\n"
	  "the rest by ptrace; ptrace: all of it, and no BPF for the\n"
	  "guest's memory; auto (default): bpf if this host supports it,\n"
	  "unless it misses more samples than ptrace",
	  OPTION_WORD(run.asked.technique, techniques) },
	{ "gdb", 0, "HOST:PORT",
	  "attach through a gdbstub, of QEMU without KVM or others:\n"
	  "slow, because each sample stops the whole machine (default 49 Hz)",
	  OPTION_TEXT(run.asked.gdb) },
	{ "image", 0, "FILE", "the guest's kernel: needed unless it is Linux",
	  OPTION_TEXT_OF(run.asked.image, "a file") },
	AS_RUN("symbols", "names from a vmlinux or System.map in place of those in memory"),
	AS_RUN("guest-root", NULL),
	AS_RUN("debuginfo", NULL),
	OPTION_HEADING("\n"),
	{ "wait", 0, "NAME",
	  "wait until a VMM of this name is started (its program, or the\n"
	  "name of its machine), and profile from its first KVM_RUN",
	  OPTION_TEXT(run.asked.launch.wait_for) },
	{ "until", 0, "console:REGEX",
	  "with -- VMM: stop when a line of the VMM's standard output\n"
	  "matches (POSIX extended), and end the VMM",
	  OPTION_CALL(parse_until, NULL) },
	{ "timeout", 0, "TIME", "with -- VMM or --wait: end the whole command after this time",
	  OPTION_SECONDS(run.asked.launch.timeout_s, 0.001, 1e7,
			 "seconds, more than 0, or a time such as 500ms, 90s, 5m or 1h") },
	AS_RUN("duration", "stop after this time (default: Ctrl-C, or when the guest ends)"),
	AS_RUN("on-hang", NULL),
	AS_RUN("on-panic", NULL),
	AS_RUN("hang-after", NULL),
	AS_RUN("delay", NULL),
	AS_RUN("samples", NULL),
	AS_RUN("event", "wall (default), or host: all of its threads' time, with the host's side"),
	AS_RUN("freq", NULL),
	AS_RUN("max-overhead", NULL),
	AS_RUN("mem", "the memory that samples accessed, for `kvmprof mem`"),
	AS_RUN("python", NULL),
	AS_RUN("no-jitter", NULL),
	AS_RUN("stack-size", NULL),
	AS_RUN("max-stack", NULL),
	AS_RUN("cpu", NULL),
	AS_RUN("ring-size", "buffer for samples of each vCPU until they are processed"),
	AS_RUN("overwrite", NULL),
	AS_RUN("control", "listen on this socket for `kvmprof ctl` and `kvmprof top`"),
	AS_RUN("off-cpu", NULL),
	AS_RUN("off-cpu-period", NULL),
	OPTION_HEADING("\n"),
	AS_RUN("output", "profile (default perf.data); -: to standard output"),
	AS_RUN("no-output", "no profile: for --control and --ps-at-end"),
	AS_RUN("single-file", NULL),
	AS_RUN("buildid-dir", NULL),
	AS_RUN("no-buildid-cache", NULL),
	AS_RUN("json", "the summary as JSON on stdout"),
	AS_RUN("ps-at-end", "list the guest's tasks, and where they wait, before it continues\n"
			    "without kvmprof"),
	AS_RUN("sandbox", "drop rights that tracing does not need: on (default), log, off"),
	AS_RUN("no-summary", NULL),
	AS_RUN("no-status", "no status line on the terminal while it runs"),
	OPTION_HELP,
	{ 0 },
};

static const struct option_set set = {
	.usage =
		"Usage: kvmprof attach [OPTIONS] PID|DOMAIN\n"
		"       kvmprof attach [OPTIONS] --wait NAME\n"
		"       kvmprof attach [OPTIONS] -- VMM [ARGUMENTS]\n"
		"       kvmprof attach [OPTIONS] --gdb HOST:PORT\n"
		"\n"
		"Profile the guest of a VMM that runs (QEMU or any other that uses KVM): its vCPU\n"
		"threads are held for some microseconds each, nothing is installed or written, "
		"and the\n"
		"guest runs on afterwards. Names come from the guest's memory.\n"
		"A DOMAIN of libvirt is given by name, UUID or id; the profile ends when it is "
		"paused,\n"
		"migrated or ended. A number is a PID where that process has vCPUs, else a "
		"domain's id.\n"
		"With -- kvmprof starts the VMM, profiles it from its first KVM_RUN, through "
		"jailers, and\n"
		"ends it where the profile ends first. The exit status is then the VMM's.\n"
		"\n",
	.rows = rows,
	.column = RUN_OPTIONS_COLUMN,
	.habits = attach_option_habits,
};

/* The counters of another process's threads can't be held at exits or at disks. -1 to go on, else the exit status. */
static int attach_check_event(const struct run_options *o, char **argv)
{
	const struct event_name *first = &o->events.at[0].name;

	if (!o->events.n)
		return -1;
	if (o->events.n > 1 || (first->class != EVENT_WALL && first->class != EVENT_HOST))
		return cmd_wrong_usage(argv,
				       "attach samples by one event, wall or host; unexpected",
				       o->events.n > 1 ? o->events.at[1].name.text : first->text);
	if (first->class == EVENT_HOST && (o->gdb || o->technique == ATTACH_BPF))
		return cmd_wrong_usage(argv,
				       "-e host is for a PID or a domain, and stops its threads:",
				       o->gdb ? "--gdb" : "--technique bpf");
	return -1;
}

static bool is_launched(const struct run_options *o)
{
	return o->launch.argv || o->launch.wait_for;
}

/* A VMM that is started or awaited. -1 to go on, else the exit status. */
static int attach_check_launch(struct attach_attach *at, int argc, char **argv)
{
	struct run_options *o = &at->run.asked;
	const struct attach_request *a = &at->request;

	if (optind < argc && optind > 1 && !strcmp(argv[optind - 1], "--"))
		o->launch.argv = argv + optind;
	if (is_launched(o) && (o->gdb || a->what || a->uri))
		return cmd_wrong_usage(
			argv, "give either a running machine or a VMM to start; unexpected",
			o->gdb	  ? o->gdb
			: a->what ? a->what
				  : a->uri);
	if (o->launch.wait_for && optind < argc)
		return cmd_wrong_usage(argv, "--wait takes one name; unexpected", argv[optind]);
	if (o->launch.until && !o->launch.argv)
		return cmd_wrong(argv,
				 "--until is for a VMM that kvmprof starts: -- VMM ARGUMENTS");
	if (o->launch.timeout_s > 0 && !is_launched(o))
		return cmd_wrong(argv,
				 "--timeout is for -- VMM and --wait; a machine that runs has "
				 "--duration");
	/* attach shows no console, except for one that kvmprof reads itself. */
	if (o->launch.until) {
		o->stop_on = o->launch.until;
		o->quiet = false;
	}
	return -1;
}

/* -1 to go on, else the exit status. */
static int attach_parse(struct attach_attach *at, int argc, char **argv)
{
	struct run_options *o = &at->run.asked;
	struct attach_request *a = &at->request;
	double freq;
	int status;

	o->reporter = &cmd_reporter;
	o->help = stdout;
	run_options_default(o);
	freq = o->freq_hz;
	o->command = "attach";
	/* The console is the VMM's. */
	o->quiet = true;
	o->tune = false;
	o->freq_hz = 0;
	status = cmd_options(&set, at, argc, argv);
	if (status >= 0)
		return status;
	if (o->freq_hz == 0)
		o->freq_hz = o->gdb ? GDB_FREQ_HZ : freq;
	if (o->gdb && (optind < argc || a->what || a->uri))
		return cmd_wrong_usage(argv, "give one of a PID, a domain and --gdb; unexpected",
				       optind < argc ? argv[optind]
				       : a->what     ? a->what
						     : a->uri);
	if (o->gdb && o->technique != ATTACH_AUTO)
		return cmd_wrong_usage(argv, "--technique is for a PID or a domain, not for --gdb",
				       o->gdb);
	if (o->gdb && o->attach_machine)
		return cmd_wrong_usage(argv, "--vm is for a process, not for --gdb", o->gdb);
	status = attach_check_event(o, argv);
	if (status >= 0)
		return status;
	if (o->mem && o->technique == ATTACH_BPF)
		return cmd_wrong_usage(argv,
				       "--mem needs what BPF does not see (segment bases), without",
				       "--technique bpf");
	if (o->python && o->technique == ATTACH_BPF)
		return cmd_wrong_usage(
			argv, "--python needs what BPF does not see (the FS base), without",
			"--technique bpf");
	status = attach_check_launch(at, argc, argv);
	if (status >= 0)
		return status;
	if (is_launched(o))
		return run_options_check(o);
	status = o->gdb ? -1 : cmd_attach_parse(a, argc, argv, "");
	if (status >= 0)
		return status;
	if (o->symbols && !o->image && strcmp(o->symbols, "live"))
		return cmd_wrong_usage(
			argv,
			"--symbols FILE takes --image FILE, too (the guest's kernel; "
			"a vmlinux with symbols can be --image alone), to check these "
			"names:",
			o->symbols);
	return run_options_check(o);
}

int cmd_attach(int argc, char **argv)
{
	cleanup_free struct attach_attach *a =
		calloc(1, sizeof(*a)); /* large: two stacks of frames */
	struct run *r = a ? &a->run : NULL;
	char name[LIBVIRT_NAME_MAX + 32];
	struct err e = { 0 };
	int status;

	if (!r)
		return cmd_no_memory();
	a->request.way = ATTACH_GUESS;
	status = attach_parse(a, argc, argv);
	if (status >= 0)
		return status;
	if (!r->asked.gdb && !is_launched(&r->asked) &&
	    attach_domain_find(&a->request, &r->asked.attach, &r->domain, &e) < 0) {
		fprintf(stderr, "kvmprof: %s\n", e.text);
		return 1;
	}
	if (r->asked.launch.argv)
		snprintf(name, sizeof(name), "(guest of %.200s)", r->asked.launch.argv[0]);
	else if (r->asked.launch.wait_for)
		snprintf(name, sizeof(name), "(guest of %.200s)", r->asked.launch.wait_for);
	else if (r->asked.gdb)
		snprintf(name, sizeof(name), "(guest behind a gdbstub)");
	else if (r->domain)
		snprintf(name, sizeof(name), "(domain %s)", r->domain->domain.name);
	else
		snprintf(name, sizeof(name), "(guest of process %d)", (int)r->asked.attach);
	r->asked.attach_name = name;
	r->json = r->asked.json ? stdout : NULL;
	return run_main(r, argc, argv);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * main: selects the command.
 */
#include "profile/cmd/cmd.h"

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/json.h"
#include "base/nearest.h"
#include "base/option.h"
#include "base/signals.h"
#include "profile/cmd/common.h"
#include "profile/cmd/help.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Rows without a name are the headings of `kvmprof help`. */
static const struct main_command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{ NULL, NULL, "Record" },
	{ "run", cmd_run, "boot a kernel and profile it" },
	{ "iosnoop", cmd_iosnoop, "boot a kernel and show the requests to its disks" },
	{ "stat", cmd_stat, "boot a kernel and count: exits, where the time went" },
	{ "attach", cmd_attach, "profile a guest that another VMM runs" },
	{ "top", cmd_top, "the hottest functions of a guest while it runs" },
	{ "ps", cmd_ps, "the tasks of a guest that runs, and what they wait for" },
	{ "why", cmd_why, "why a guest stands still or crawls: a verdict with its proof" },
	{ "dmesg", cmd_dmesg, "the log of a guest's kernel, read from its memory" },
	{ "ctl", cmd_ctl, "watch and change a run that goes on" },
	{ NULL, NULL, "Look" },
	{ "report", cmd_report, "where the time went, by function" },
	{ "annotate", cmd_annotate, "a function's instructions, with the time at each" },
	{ "flamegraph", cmd_flamegraph, "a picture: flame graph, difference, chart over time" },
	{ "view", cmd_view, "one page with linked views: time line, flame graph, callers, code" },
	{ "mem", cmd_mem,
	  "which memory is used, in which pages, and what huge pages would change" },
	{ "script", cmd_script, "every sample as text, for flame graph scripts" },
	{ NULL, NULL, "Compare" },
	{ "diff", cmd_diff, "what changed between two profiles, or two groups of them" },
	{ "diverge", cmd_diverge, "the first instruction at which two exact runs part" },
	{ "bench", cmd_bench, "runs of two kernels in turn, and whether one got worse" },
	{ "gate", cmd_gate, "did it get slower? For pipelines: rules, error rate, exit status" },
	{ NULL, NULL, "Convert" },
	{ "export", cmd_export, "a profile in the format of another tool" },
	{ "import", cmd_import, "a profile of stacks that other tools wrote as text" },
	{ "archive", cmd_archive, "a profile with all that it needs, as one file" },
	{ "push", cmd_push, "a profile to Pyroscope, Parca and their like, over HTTP" },
	{ NULL, NULL, "Inspect" },
	{ "inspect", cmd_inspect, "what a kernel or disk image is, and how it would boot" },
	{ "symbols", cmd_symbols,
	  "the symbols in a kernel image, and what else it says of itself" },
	{ "scan", cmd_scan, "which files have which build ids, for --build-id-map" },
	{ "list", cmd_list,
	  "the events that this host offers, for run --event; libvirt's domains" },
	{ "check", cmd_check, "what this host offers, and how to mend what it lacks" },
};

#define ABOUT "kvmprof: profile an unmodified kernel from outside its virtual machine"

/* Names of perf's commands, and those of kvmprof for the same purpose. */
static const struct habit {
	const char *typed, *instead;
} habits[] = {
	{ "record", "kvmprof run" }, { "evlist", "kvmprof report --header" },
	{ "kvm", "kvmprof stat" },   { "buildid-list", "kvmprof report --images" },
	{ "test", "kvmprof check" }, { "sched", "kvmprof ps" },
};

static const struct main_command *command_find(const char *name)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (commands[i].name && !strcmp(name, commands[i].name))
			return &commands[i];
	return NULL;
}

static void print_overview(FILE *out)
{
	fputs(ABOUT "\n\nUsage: kvmprof COMMAND [OPTIONS]\n", out);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (commands[i].name)
			fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
		else
			fprintf(out, "\n%s\n", commands[i].help);
	}
	help_examples(out);
	fputs("\n`kvmprof help COMMAND` explains a command, `kvmprof help topics` what is common "
	      "to\n"
	      "all; `kvmprof help --json` has the options of all. Each command has a manual page: "
	      "`man kvmprof-run`.\n",
	      out);
}

/* Without arguments: enough to begin. */
static void print_first_steps(FILE *out)
{
	fputs(ABOUT "\n"
		    "  kvmprof run          boot the built-in demo guest and profile it\n"
		    "  kvmprof run IMAGE    the same with a kernel or a disk image of yours\n"
		    "  kvmprof attach PID   profile a virtual machine that runs already\n"
		    "  kvmprof report       where the time went\n"
		    "Begin with `kvmprof check`: can this host do it? `kvmprof help` lists all "
		    "commands.\n",
	      out);
}

enum name_kind { NAME_COMMAND, NAME_COMMAND_OR_TOPIC };

static int refuse_name(enum name_kind kind, const char *name)
{
	const char *what = kind == NAME_COMMAND ? "command" : "command or topic";
	struct nearest n = { .typed = name };

	for (size_t i = 0; i < sizeof(habits) / sizeof(habits[0]); i++)
		if (!strcmp(name, habits[i].typed)) {
			fprintf(stderr, "kvmprof: unknown %s '%s'; here it is `%s`\n", what, name,
				habits[i].instead);
			return 2;
		}
	/* A path is no command: "kvmprof vmlinuz", "kvmprof perf.data". */
	if (kind == NAME_COMMAND && access(name, F_OK) == 0) {
		fprintf(stderr,
			"kvmprof: '%s' is a path, not a command: `kvmprof run %s` boots a kernel "
			"or a "
			"disk image, `kvmprof report -i %s` shows a profile\n",
			name, name, name);
		return 2;
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (commands[i].name)
			nearest_add(&n, commands[i].name);
	nearest_add(&n, "help");
	if (kind == NAME_COMMAND_OR_TOPIC)
		help_topics_near(&n);
	fprintf(stderr, "kvmprof: unknown %s '%s'", what, name);
	if (nearest_word(&n))
		fprintf(stderr, " (did you mean %s?)", nearest_word(&n));
	fputs("; `kvmprof help` lists them\n", stderr);
	return 2;
}

/* Prints all commands with their options, for programs: completions, editors, front ends. */
static int help_as_json(void)
{
	struct json_writer w;
	const char *group = NULL;

	json_open(&w);
	json_str(&w, "version", KVMPROF_VERSION);
	json_array_begin(&w, "commands");
	option_help_as_json(&w);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		char help[] = "--help", *argv[] = { (char *)commands[i].name, help, NULL };

		if (!commands[i].name) {
			group = commands[i].help;
			continue;
		}
		json_object_begin(&w, NULL);
		json_str(&w, "name", commands[i].name);
		json_str(&w, "group", group);
		json_str(&w, "help", commands[i].help);
		commands[i].run(2, argv);
		json_object_end(&w);
	}
	option_help_as_json(NULL);
	json_array_end(&w);
	return json_close(&w, stdout) ? cmd_no_memory() : 0;
}

static int help_command(int argc, char **argv)
{
	char *as_command[] = { argc > 1 ? argv[1] : NULL, "--help", NULL };
	const struct main_command *c;

	if (argc > 2) {
		fprintf(stderr, "kvmprof help: unexpected argument '%s'\n", argv[2]);
		return 2;
	}
	if (argc < 2 || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") ||
	    !strcmp(argv[1], "help")) {
		print_overview(stdout);
		return 0;
	}
	if (!strcmp(argv[1], "--json"))
		return help_as_json();
	if (help_topic(stdout, argv[1]))
		return 0;
	c = command_find(argv[1]);
	return c ? c->run(2, as_command) : refuse_name(NAME_COMMAND_OR_TOPIC, argv[1]);
}

static int run_command(int argc, char **argv)
{
	const struct main_command *c;

	if (argc < 2) {
		print_first_steps(stderr);
		return 2;
	}
	if (!strcmp(argv[1], "help"))
		return help_command(argc - 1, argv + 1);
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		print_overview(stdout);
		return 0;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V") || !strcmp(argv[1], "-v") ||
	    !strcmp(argv[1], "version")) {
		puts("kvmprof " KVMPROF_VERSION);
		return 0;
	}
	c = command_find(argv[1]);
	if (c && argc > 2 && !strcmp(argv[2], "--version")) {
		puts("kvmprof " KVMPROF_VERSION);
		return 0;
	}
	return c ? c->run(argc - 1, argv + 1) : refuse_name(NAME_COMMAND, argv[1]);
}

/*
 * Where a standard stream is closed, the next file that is opened would be it, and a profile
 * would have messages in it. What is there instead can be neither read nor written.
 */
static void keep_streams(void)
{
	int fd;

	do
		fd = open("/", O_PATH);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/*
 * Returns the least descriptor from `from` on that the command line names, as the shell's <(COMMAND) does; UINT_MAX if
 * there is none.
 */
static unsigned int named_descriptor(int argc, char **argv, unsigned int from)
{
	static const char *const folders[] = { "/dev/fd/", "/proc/self/fd/" };
	unsigned int least = UINT_MAX;

	for (int i = 1; i < argc; i++)
		for (size_t k = 0; k < ARRAY_SIZE(folders); k++)
			for (const char *at = argv[i]; (at = strstr(at, folders[k]));) {
				unsigned long fd;
				char *end;

				at += strlen(folders[k]);
				fd = strtoul(at, &end, 10);
				if (end != at && fd >= from && fd < least)
					least = (unsigned int)fd;
			}
	return least;
}

/*
 * Closes each descriptor that was inherited and that nobody named: a thread that a guest has taken over could read and
 * write what it leads to.
 */
static void close_inherited(int argc, char **argv)
{
	unsigned int from = STDERR_FILENO + 1, named;

	while ((named = named_descriptor(argc, argv, from)) < UINT_MAX) {
		if (named > from)
			fds_close_range(from, named - 1);
		from = named + 1;
	}
	fds_close_range(from, UINT_MAX);
}

/* A command succeeds only if its output was written. */
static int finish_stdout(int status)
{
	struct err e = { 0 };

	/* Some file systems report a full disk only here. */
	if (!cmd_flush_stdout(&e) && close(STDOUT_FILENO) < 0 && errno != EBADF && errno != EINTR)
		err_set(&e, errno, "standard output: cannot write: %s", strerror(errno));
	if (!e.code)
		return status;
	fprintf(stderr, "kvmprof: %s\n", e.text);
	return status == 2 ? 2 : 1;
}

int main(int argc, char **argv)
{
	keep_streams();
	close_inherited(argc, argv);
	/* A file that has become too long for the user's limit is a failed write like others. */
	signal(SIGXFSZ, SIG_IGN);
	signals_init();
	return finish_stdout(run_command(argc, argv));
}

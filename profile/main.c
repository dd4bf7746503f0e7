/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * main: which subcommand?
 */
#include "profile/cmd.h"

#include <stdio.h>
#include <string.h>

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{ "run", cmd_run, "boot a kernel and profile it" },
	{ "report", cmd_report, "where the time went, by function" },
	{ "flamegraph", cmd_flamegraph, "a picture: flame graph, difference, chart over time" },
	{ "script", cmd_script, "every sample as text, for flame graph scripts" },
	{ "diff", cmd_diff, "what changed between two profiles, or two groups of them" },
	{ "import", cmd_import, "a profile of stacks that other tools wrote as text" },
	{ "archive", cmd_archive, "a profile with all that it needs, as one file" },
	{ "symbols", cmd_symbols,
	  "the symbols in a kernel image, and what else it says of itself" },
	{ "scan", cmd_scan, "which files have which build ids, for --build-id-map" },
	{ "check", cmd_check, "what this host offers, and how to mend what it lacks" },
};

static void help(FILE *out)
{
	fputs("kvmprof: profile a kernel from underneath\n\nUsage: kvmprof COMMAND [OPTIONS]\n\n",
	      out);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
	fputs("\n`kvmprof COMMAND --help` explains each. `kvmprof run` alone profiles a demo "
	      "guest.\n",
	      out);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "--help";

	if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
		help(argc > 1 ? stdout : stderr);
		return argc > 1 ? 0 : 2;
	}
	if (!strcmp(name, "--version")) {
		puts("kvmprof " KVMPROF_VERSION);
		return 0;
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(name, commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	fprintf(stderr, "kvmprof: unknown command '%s'; `kvmprof help` lists them\n", name);
	return 2;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_common: how the subcommands say that they were called wrongly, or could not print. argv is what
 * the subcommand was given, argv[0] its name. Prints one line to stderr and returns
 * the exit status, 2. Main thread only: getopt's variables are read.
 */
#ifndef KVMPROF_PROFILE_CMD_COMMON_H
#define KVMPROF_PROFILE_CMD_COMMON_H

#include "base/option.h"
#include "base/reporter.h"
#include "profile/compare/stats/deals.h"
#include "profile/format/names/srcline.h"
#include "profile/format/perfdata/format.h"
#include "profile/record/libvirt/attach_domain.h"

/* Prints on standard error; for library code that reports while it works. */
extern const struct reporter cmd_reporter;

/*
 * What was printed so far, out of the process; also at the end of each command (main.c), so
 * that none needs to look whether it could print. A failure is told once. -EPIPE: a pipe's
 * reader has left, which is no failure; nothing is recorded.
 */
int cmd_flush_stdout(struct err *e);

/*
 * option_parse() for a command: says what is wrong, or prints the help. Returns -1 to go on, with
 * the first word at argv[optind], or the exit status.
 */
int cmd_options(const struct option_set *set, void *at, int argc, char **argv);

/* What the function of a row returns when the command has done what was asked for. */
#define CMD_OPTION_ENDS 2

struct stackset;
/* Writes to stderr what a profile has lost, and what is not shown of it. */
void cmd_say_missing(const char *input, const struct stackset *s);

/* Says why on stderr unless ret is 0; the exit status: 0 or 1. */
int cmd_status(int ret, const struct err *e);

/* Options that several commands have, with the member of OPTION_STRUCT that takes the value. */
#define CMD_INPUT(m)                                                      \
	{                                                                 \
		"input", 'i', "FILE", "the profile (default: perf.data)", \
			OPTION_TEXT_OF(m, "a profile")                    \
	}
#define CMD_EVENT(m)                                                                        \
	{                                                                                   \
		"event", 0, "NAME", "show this one of several events (default: the first)", \
			OPTION_TEXT(m)                                                      \
	}
/* m: a uint32_t. */
#define CMD_EPOCH(m)                                                              \
	{                                                                         \
		"epoch", 0, "N",                                                  \
			"of a guest that ran several kernels the Nth (default:\n" \
			"all): the header of a report lists them",                \
			OPTION_WHOLE(m, 1, PERFDATA_MAX_EPOCHS, "1 to 32")        \
	}
#define CMD_PHASE(m)                                                                \
	{                                                                           \
		"phase", 0, "NAME",                                                 \
			"samples of this phase of a boot, or from this marker to\n" \
			"the next: see `kvmprof report --phase'",                   \
			OPTION_TEXT(m)                                              \
	}
#define CMD_NO_DEMANGLE(m)                                                          \
	{                                                                           \
		"no-demangle", 0, NULL,                                             \
			"print names of C++ and Rust functions without demangling", \
			OPTION_PUT(m, true)                                         \
	}
#define CMD_BUILDID_DIR(m)                                                            \
	{                                                                             \
		"buildid-dir", 0, "DIR", "perf's build-id cache (default: ~/.debug)", \
			OPTION_TEXT(m)                                                \
	}

/* comm, pid, cpu, time, kernel-only: which samples; about a struct stackset_options. */
extern const struct option_row cmd_filter_rows[];

/* connect, pid, domain, name: which machine to attach to; about a struct attach_request. */
extern const struct option_row cmd_attach_rows[];
/* A machine that is named. -EINVAL: there is one already, or the name is empty. */
int cmd_attach_set(struct attach_request *a, enum attach_way way, const char *what, struct err *e);

/* Profiles of runs of the same code. */
struct cmd_runs {
	const char *path[STATS_MAX_RUNS]; /* borrowed */
	unsigned int n;
};

/* -E2BIG: there are too many. */
int cmd_runs_add(struct cmd_runs *r, const char *path, struct err *e);
/* "a,b,c", cut in place; a path that exists as it is may have commas. */
int cmd_runs_add_list(struct cmd_runs *r, char *list, struct err *e);

/* Says so on stderr; returns the exit status 1. */
int cmd_no_memory(void);

/* TEXT, and where the help is. */
int cmd_wrong(char *const argv[], const char *text);

/* "WHAT 'ARG'", and where the help is. */
int cmd_wrong_usage(char *const argv[], const char *what, const char *arg);

/* -- what commands that print source lines have in common --------------------------------------- */

/* debuginfo, build-id-map; about a struct debuginfo_places. */
extern const struct option_row cmd_debuginfo_rows[];

/* On a terminal: stderr shows how far a download is. */
void cmd_debuginfo_show_progress(struct debuginfo_places *places);

/*
 * Finds and loads the kernel's lines for a profile; says on stderr what is missing. 0 also when
 * there is no debug information; -errno, with the reason in e, when what the user gave can't be
 * used. *out is the caller's, to destroy, also then; NULL at first.
 */
int cmd_debuginfo_open(struct srcline **out, struct debuginfo_places *places,
		       const struct perfdata *p, struct err *e);

#endif

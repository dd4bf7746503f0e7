/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_common: functions that several subcommands use: usage errors, options, messages. argv is that
 * of the subcommand, argv[0] its name. The cmd_wrong*() functions print one line to stderr and
 * return the exit status 2. Called by the main thread only, because getopt's variables are read.
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
 * Writes the buffered output of stdout; called at the end of each command, too (main.c), so that no
 * command needs to check its output. A failure is reported once. Returns 0 or -errno; -EPIPE means
 * that the reader of a pipe has left, which is not a failure and is not recorded in e.
 */
int cmd_flush_stdout(struct err *e);

/*
 * Parses the options of a command. Prints an error, or the help. Returns -1 to continue, with the
 * first word at argv[optind], or the exit status.
 */
int cmd_options(const struct option_set *set, void *at, int argc, char **argv);

/*
 * Takes one of two words as the profile, for commands that need another word, and moves the other
 * word to argv[optind]. The profile is the first one, unless only the second one is an existing
 * path. Does nothing if -i named the profile: *input is then not `by_default`.
 */
void cmd_take_profile(int argc, char **argv, const char *by_default, const char **input);

/*
 * Returned by the function of an option's row when the command is complete, e.g. after a list was
 * printed.
 */
#define CMD_OPTION_ENDS 2

struct stackset;
/* Prints to stderr which samples a profile has lost, and which of its data are not shown. */
void cmd_report_missing(const char *input, const struct stackset *s);

/* Prints e->text to stderr unless ret is 0. Returns the exit status: 0, or 1 unless ret is 0. */
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
/* m is a uint32_t. */
#define CMD_EPOCH(m)                                                                   \
	{                                                                              \
		"epoch", 0, "N",                                                       \
			"the Nth kernel of a guest that ran several (default: all);\n" \
			"the header of a report lists them",                           \
			OPTION_WHOLE(m, 1, PERFDATA_MAX_EPOCHS, "1 to 32")             \
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

/*
 * The options connect, pid, domain and name, which select a machine; they set a struct
 * attach_request.
 */
extern const struct option_row cmd_attach_rows[];
/*
 * Sets the machine to attach to; `what` is borrowed. Returns 0, or -EINVAL if one is set already or
 * `what` is empty.
 */
int cmd_attach_set(struct attach_request *a, enum attach_selector way, const char *what,
		   struct err *e);
/*
 * Takes the word behind the options as the machine, if there is one, and checks what was given.
 * `others` completes the list of what may be given in the message that nothing was: ", --gdb" or "".
 * Returns -1 to continue, with a->what set, or the exit status after a message.
 */
int cmd_attach_parse(struct attach_request *a, int argc, char **argv, const char *others);

/* The paths of profiles of runs of the same code. */
struct cmd_runs {
	const char *path[STATS_MAX_RUNS]; /* borrowed */
	unsigned int n;
};

/* Appends a path, which is borrowed. Returns 0, or -E2BIG if there are too many. */
int cmd_runs_add(struct cmd_runs *r, const char *path, struct err *e);
/*
 * Appends the paths of "a,b,c", which is cut in place and borrowed; an existing path may contain
 * commas. Returns 0 or -E2BIG.
 */
int cmd_runs_add_list(struct cmd_runs *r, char *list, struct err *e);

/* Reports a lack of memory to stderr and returns the exit status 1. */
int cmd_no_memory(void);

/* Prints `text` and the command that shows the help. Returns 2. */
int cmd_wrong(char *const argv[], const char *text);

/* Prints "WHAT 'ARG'" and the command that shows the help. Returns 2. */
int cmd_wrong_usage(char *const argv[], const char *what, const char *arg);

/*
 * -- for commands that print source lines --------------------------------------------------------
 */

/* The options debuginfo and build-id-map; they set a struct debuginfo_places. */
extern const struct option_row cmd_debuginfo_rows[];

/* Makes downloads show their progress on stderr, if it is a terminal. */
void cmd_debuginfo_show_progress(struct debuginfo_places *places);

/*
 * Finds and loads the kernel's source lines for a profile, and reports to stderr what is missing.
 * Returns 0, also without debug information, or -errno with the reason in e if a place that the
 * user gave cannot be used. *out must be NULL before; the caller frees it with srcline_destroy() in
 * any case.
 */
int cmd_debuginfo_open(struct srcline **out, struct debuginfo_places *places,
		       const struct perfdata *p, struct err *e);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_options_tasks: options of `kvmprof run` and `attach` about the guest's tasks and the
 * status line.
 */
#ifndef KVMPROF_PROFILE_OPTIONS_TASKS_H
#define KVMPROF_PROFILE_OPTIONS_TASKS_H

#include <stdbool.h>
#include <stdint.h>

struct run_options;

/* All zero: none of them given. */
struct run_tasks {
	bool off_cpu;
	double off_cpu_ms; /* 0: the default */
	bool ps_at_end;
	bool no_status;
};

enum {
	RUN_OPT_OFF_CPU = 700,
	RUN_OPT_OFF_CPU_PERIOD,
	RUN_OPT_PS_AT_END,
	RUN_OPT_NO_STATUS,
	RUN_OPT_TASKS_END
};

/* Rows of a struct option table. */
/* clang-format off */
#define RUN_OPTIONS_TASKS                                                       \
	{ "off-cpu", no_argument, NULL, RUN_OPT_OFF_CPU },                      \
	{ "off-cpu-period", required_argument, NULL, RUN_OPT_OFF_CPU_PERIOD },  \
	{ "ps-at-end", no_argument, NULL, RUN_OPT_PS_AT_END },                  \
	{ "no-status", no_argument, NULL, RUN_OPT_NO_STATUS }
/* clang-format on */

/* Their lines of --help. */
#define RUN_OPTIONS_TASKS_HELP                                                               \
	"      --off-cpu           also sample the tasks that do not run, where they wait: " \
	"event\n"                                                                            \
	"                          off-cpu, see `kvmprof flamegraph --event off-cpu`\n"      \
	"      --off-cpu-period MS look at them every so many milliseconds (default 100)\n"

static inline bool run_options_tasks_has(int opt)
{
	return opt >= RUN_OPT_OFF_CPU && opt < RUN_OPT_TASKS_END;
}

/* One of them: -1 to go on, else 2 after a message. */
int run_options_tasks_take(struct run_options *o, int opt, const char *arg);
/* Do they fit the others? The same. */
int run_options_tasks_check(const struct run_options *o);

/* ns; 0: off. */
uint64_t run_options_off_cpu_ns(const struct run_options *o);

#endif

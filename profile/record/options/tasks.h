/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tasks: options of `kvmprof run` and `attach` about the guest's tasks and the
 * status line.
 */
#ifndef KVMPROF_PROFILE_RECORD_OPTIONS_TASKS_H
#define KVMPROF_PROFILE_RECORD_OPTIONS_TASKS_H

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

/* Do they fit the other options? -1: they do. 2, the exit status: they do not, after a message. */
int run_options_tasks_check(const struct run_options *o);

/* ns; 0: off. */
uint64_t run_options_off_cpu_ns(const struct run_options *o);

#endif

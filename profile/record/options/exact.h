/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * exact: the options of `kvmprof run` that --engine exact supports. All functions are called by the
 * main thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_OPTIONS_EXACT_H
#define KVMPROF_PROFILE_RECORD_OPTIONS_EXACT_H

#include "base/option.h"

#include <stdbool.h>

struct run_options;

/* Rows of --engine and --repeat. */
extern const struct option_row run_exact_rows[];

/* Returns whether --engine exact supports the option with this long name. */
bool run_options_exact_accepts(const char *name);
/*
 * Returns -1 if the options fit each other; otherwise prints the reason in one line and returns the
 * exit status 2.
 */
int run_options_exact_check(struct run_options *o);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * exact: which options of `kvmprof run` go with --engine exact.
 */
#ifndef KVMPROF_PROFILE_RECORD_OPTIONS_EXACT_H
#define KVMPROF_PROFILE_RECORD_OPTIONS_EXACT_H

#include "base/option.h"

#include <stdbool.h>

struct run_options;

/* engine, repeat. */
extern const struct option_row run_exact_rows[];

/* Does an option mean something there? By its long name. */
bool run_options_exact_takes(const char *name);
/* -1, or 2 after a line that says what does not fit, and why. */
int run_options_exact_check(struct run_options *o);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * habits: options of other tools that people type with `kvmprof run` and `kvmprof attach`, and what
 * to write instead. The tools are QEMU, virtme-ng, perf and strace.
 */
#ifndef KVMPROF_PROFILE_RECORD_OPTIONS_HABITS_H
#define KVMPROF_PROFILE_RECORD_OPTIONS_HABITS_H

#include "base/option.h"

extern const struct option_habit run_option_habits[];
extern const struct option_habit attach_option_habits[];

#endif

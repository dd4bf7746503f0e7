/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * machine: the options of `kvmprof run` for its machine: how the kernel is entered and what it is
 * given, what backs memory, and where vCPUs run. All functions are called by the main thread.
 *
 * A command line without IMAGE runs the embedded demo guest. An empty variable in a script makes
 * such a command line by mistake, so options that only another kernel understands are refused.
 */
#ifndef KVMPROF_PROFILE_RECORD_OPTIONS_MACHINE_H
#define KVMPROF_PROFILE_RECORD_OPTIONS_MACHINE_H

#include "profile/record/options/options.h"

/* Rows of --boot, --entry and --module: how the kernel is entered. */
extern const struct option_row run_kernel_rows[];
/* Rows of --hugepages, --numa and --pin: what the host provides. */
extern const struct option_row run_host_rows[];

#define RUN_DEMO_WHY 256u /* size of the buffer for a reason */

/* Returns whether these options boot the embedded demo guest. */
bool run_options_is_demo(const struct run_options *o);

/*
 * Returns NULL, or in `buf` a text with the options that the demo guest cannot use: those for RAM
 * disks, root file systems, modules, shares and symbols, a disk without mode=, and words such as
 * root=. The result is `buf`, which has `size` bytes.
 */
const char *run_options_demo_check(const struct run_options *o, char *buf, size_t size);

#endif

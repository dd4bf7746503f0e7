/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * machine: what `kvmprof run` is told about its machine: how the kernel is
 * entered and what it is given, what backs memory, where vCPUs run.
 *
 * A command line without IMAGE runs the embedded demo guest. An empty variable in a script makes such a
 * command line by mistake: what only another kernel understands is refused.
 */
#ifndef KVMPROF_PROFILE_RECORD_OPTIONS_MACHINE_H
#define KVMPROF_PROFILE_RECORD_OPTIONS_MACHINE_H

#include "profile/record/options/options.h"

/* boot, entry, module: how the kernel is entered. */
extern const struct option_row run_kernel_rows[];
/* hugepages, numa, pin: what the host gives. */
extern const struct option_row run_host_rows[];

#define RUN_DEMO_WHY 256u /* bytes of a reason */

/* Returns whether the embedded demo guest is what these options boot. */
bool run_options_is_demo(const struct run_options *o);

/*
 * Returns NULL, or in buf what these options have that means nothing to the demo guest: options for RAM
 * disks, root file systems, modules, shares and symbols, a disk without mode=, and words such as root=.
 */
const char *run_options_demo_check(const struct run_options *o, char *buf, size_t size);

#endif

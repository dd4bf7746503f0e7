/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * machine: what `kvmprof run` is told about its machine: how the kernel is
 * entered and what it is given, what backs memory, where vCPUs run.
 */
#ifndef KVMPROF_PROFILE_RECORD_OPTIONS_MACHINE_H
#define KVMPROF_PROFILE_RECORD_OPTIONS_MACHINE_H

#include "profile/record/options/options.h"

/* boot, entry, module: how the kernel is entered. */
extern const struct option_row run_kernel_rows[];
/* hugepages, numa, pin: what the host gives. */
extern const struct option_row run_host_rows[];

#endif

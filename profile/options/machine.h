/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_options_machine: what `kvmprof run` is told about its machine: how the kernel is
 * entered and what it is given, what backs memory, where vCPUs run.
 */
#ifndef KVMPROF_PROFILE_OPTIONS_MACHINE_H
#define KVMPROF_PROFILE_OPTIONS_MACHINE_H

#include "base/file.h"
#include "profile/options/options.h"
#include "vmm/boot/load.h"

/* Values of getopt_long(); those of run_options.c end before. */
enum {
	OPT_MACHINE_FIRST = 512,
	OPT_BOOT = OPT_MACHINE_FIRST,
	OPT_ENTRY,
	OPT_MODULE,
	OPT_HUGEPAGES,
	OPT_PIN,
	OPT_NUMA,
	OPT_MACHINE_END
};

/* One of the options above. -1 to go on; 2 with a message on stderr. */
int run_options_take_machine(struct run_options *o, int opt, const char *arg);

/* The modules' files, as vm_config wants them; owned. */
struct run_modules {
	struct boot_module at[BOOT_MAX_MODULES];
	struct file_map file[BOOT_MAX_MODULES];
	char *name[BOOT_MAX_MODULES];
	unsigned int n;
};
int run_modules_open(struct run_modules *m, const struct run_options *o, struct err *e);
/* Also what was not opened yet, or all was closed. */
void run_modules_close(struct run_modules *m);

#endif

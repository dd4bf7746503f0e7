/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * prepare: makes a machine that is ready to start from the options of a run: its inputs, the host,
 * the VM. Called by the main thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_PREPARE_H
#define KVMPROF_PROFILE_RECORD_RUN_PREPARE_H

#include "base/err.h"
#include "base/file.h"
#include "vmm/boot/load.h"

struct run;

/* The files of the modules, as vm_config needs them; all owned. */
struct run_modules {
	struct boot_module at[BOOT_MAX_MODULES];
	struct file_map file[BOOT_MAX_MODULES];
	char *name[BOOT_MAX_MODULES];
	unsigned int n;
};
/* Frees the names and closes the files. */
void run_modules_close(struct run_modules *m);

/*
 * Creates everything up to the machine, which does not run yet. Returns 0 or -errno with the reason
 * in *e; run_deinit() is necessary in either case.
 */
int run_prepare(struct run *r, struct err *e);

#endif

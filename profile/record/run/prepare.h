/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * prepare: from the options of a run to a machine that is ready to start: its inputs, the host, the VM. Main
 * thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_PREPARE_H
#define KVMPROF_PROFILE_RECORD_RUN_PREPARE_H

#include "base/err.h"
#include "base/file.h"
#include "vmm/boot/load.h"

struct run;

/* The modules' files, as vm_config wants them; owned. */
struct run_modules {
	struct boot_module at[BOOT_MAX_MODULES];
	struct file_map file[BOOT_MAX_MODULES];
	char *name[BOOT_MAX_MODULES];
	unsigned int n;
};
void run_modules_close(struct run_modules *m);

/* Everything up to the machine, which does not run yet. Returns 0 or -errno; run_deinit() is due either way. */
int run_prepare(struct run *r, struct err *e);

#endif

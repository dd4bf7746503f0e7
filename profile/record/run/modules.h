/* SPDX-License-Identifier: GPL-2.0-or-later */
/* modules: the files that --module gives to a kernel beside its image. Main thread. */
#ifndef KVMPROF_PROFILE_RECORD_RUN_MODULES_H
#define KVMPROF_PROFILE_RECORD_RUN_MODULES_H

#include "base/err.h"
#include "base/file.h"
#include "profile/record/options/options.h"
#include "vmm/boot/load.h"

/* The modules' files, as vm_config wants them; owned. */
struct run_modules {
	struct boot_module at[BOOT_MAX_MODULES];
	struct file_map file[BOOT_MAX_MODULES];
	char *name[BOOT_MAX_MODULES];
	unsigned int n;
};
/* Those of o->module; run_modules_close() also after a failure. */
int run_modules_open(struct run_modules *m, const struct run_options *o, struct err *e);
/* Also what was not opened yet, or all was closed. */
void run_modules_close(struct run_modules *m);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* disks: the open disks of a run. Main thread. */
#ifndef KVMPROF_PROFILE_RECORD_RUN_DISKS_H
#define KVMPROF_PROFILE_RECORD_RUN_DISKS_H

#include "base/reporter.h"
#include "base/err.h"
#include "profile/record/options/disk.h"
#include "vmm/dev/disk_budget.h"
#include "vmm/disk_config.h"

#include <stdbool.h>

struct vm_config;

/* The disks of a run, open: those of --disk behind what was added before. */
struct run_disks {
	struct disk_budget budget; /* of their overlays in memory */
	bool has_budget;
	struct vm_disk at[VM_MAX_DISKS];
	char serial[VM_MAX_DISKS][DISK_SERIAL_LEN + 1];
	unsigned int n;
};

/* Before the first one: what their overlays may take of the host's memory. */
void run_disks_limit(struct run_disks *d, const struct run_disk_options *o);
/* The next one of the guest; serial may be NULL. */
int run_disks_add(struct run_disks *d, const struct disk_config *cfg, const char *serial,
		  struct err *e);
int run_disks_open(struct run_disks *d, const struct run_disk_options *o, const struct reporter *to,
		   struct err *e);
/* Behind those that the machine's configuration has; it borrows them. */
void run_disks_configure(const struct run_disks *d, struct vm_config *cfg);
/* After vm_destroy(). -errno with e: of one at least something that was written is lost. */
int run_disks_close(struct run_disks *d, struct err *e);

#endif

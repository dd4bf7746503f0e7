/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * disks: the open disks of a run. All functions are called by the main thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_DISKS_H
#define KVMPROF_PROFILE_RECORD_RUN_DISKS_H

#include "base/reporter.h"
#include "base/err.h"
#include "profile/record/options/disk.h"
#include "vmm/dev/disk_budget.h"
#include "vmm/disk_config.h"

#include <stdbool.h>

struct vm_config;

/* The open disks of a run, those of --disk last. All zero: none. */
struct run_disks {
	struct disk_budget budget; /* the memory that their overlays may use */
	bool has_budget;
	struct vm_disk at[VM_MAX_DISKS];
	char serial[VM_MAX_DISKS][DISK_SERIAL_LEN + 1];
	unsigned int n;
};

/* Limits the host memory that the overlays may use. To be called before the first disk is added. */
void run_disks_limit(struct run_disks *d, const struct run_disk_options *o);
/*
 * Opens the next disk of the guest. serial may be NULL and is copied. Returns 0 or -errno; a disk
 * that could not be opened is not added.
 */
int run_disks_add(struct run_disks *d, const struct disk_config *cfg, const char *serial,
		  struct err *e);
/*
 * Opens all disks of --disk, and prints a note on each whose file ends within a sector. Returns 0
 * or -errno; the opened ones stay until run_disks_close().
 */
int run_disks_open(struct run_disks *d, const struct run_disk_options *o, const struct reporter *to,
		   struct err *e);
/*
 * Appends the disks to those of the machine's configuration, which borrows them: *d must outlive
 * the machine.
 */
void run_disks_configure(const struct run_disks *d, struct vm_config *cfg);
/*
 * Closes all disks, after vm_destroy(). Returns 0, or -errno with the reason in *e if data that the
 * guest wrote to a disk was lost.
 */
int run_disks_close(struct run_disks *d, struct err *e);

#endif

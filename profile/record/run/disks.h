/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * disks: the open disks of a run. All functions are called by the main thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_DISKS_H
#define KVMPROF_PROFILE_RECORD_RUN_DISKS_H

#include "base/reporter.h"
#include "base/err.h"
#include "profile/record/options/disk.h"
#include "profile/record/sandbox/jail.h"
#include "vmm/dev/disk_budget.h"
#include "vmm/dev/disk_program.h"
#include "vmm/disk_config.h"

#include <stdbool.h>

struct vm_config;

/*
 * Confines the programs that read images in other formats than raw: a jail of
 * profile/record/sandbox/jail.h with the image's files and the programs of the system, and no others.
 */
struct run_disk_jail {
	struct disk_confine confine; /* for struct disk_config */
	struct jail jail;	     /* while a program is started */
	/* Gets one line if this host lacks a protection; NULL: none. Borrowed. */
	const struct reporter *to;
	bool told;
};

/* The open disks of a run, those of --disk last. All zero: none. */
struct run_disks {
	struct disk_budget budget; /* the memory that their overlays may use */
	bool has_budget;
	struct run_disk_jail jail;
	const struct disk_confine *confine; /* NULL: programs that read images keep our rights */
	bool follow;			    /* --backing */
	struct vm_disk at[VM_MAX_DISKS];
	char serial[VM_MAX_DISKS][DISK_SERIAL_LEN + 1];
	unsigned int n;
};

/* Limits the host memory that the overlays may use. To be called before the first disk is added. */
void run_disks_limit(struct run_disks *d, const struct run_disk_options *o);
/*
 * Lets programs that read images in other formats than raw be confined. To be called before the
 * first disk is added; *d must then not be moved. to may be NULL.
 */
void run_disks_confine(struct run_disks *d, const struct reporter *to);
/* Returns whether a disk is read through a socket to another process. */
bool run_disks_are_served(const struct run_disks *d);
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

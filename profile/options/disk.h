/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_options_disk: the disks that `kvmprof run` gives to its guest.
 *
 *	disk := PATH {"," setting}
 *	setting := "readonly" | "writable" | "overlay=" FILE | "serial=" TEXT
 *
 * A comma within PATH, FILE or TEXT is written twice, as for QEMU.
 */
#ifndef KVMPROF_PROFILE_OPTIONS_DISK_H
#define KVMPROF_PROFILE_OPTIONS_DISK_H

#include "base/err.h"
#include "vmm/dev/virtio_blk.h"
#include "vmm/vm.h"

#include <getopt.h>
#include <limits.h>
#include <stdbool.h>

enum { OPT_DISK_FIRST = 0x700, OPT_DISK = OPT_DISK_FIRST, OPT_WRITABLE, OPT_DISK_END };

/* Rows for getopt_long(). */
#define RUN_DISK_LONGOPTS                                   \
	{ "disk", required_argument, NULL, OPT_DISK },      \
	{                                                   \
		"writable", no_argument, NULL, OPT_WRITABLE \
	}

#define RUN_DISK_USAGE                                                                             \
	"      --disk PATH[,...]   a disk (vda, vdb, ... in order): a raw image or a block\n"      \
	"                          device, which stays as it is, since what is written is kept\n"  \
	"                          in memory; ,readonly: it can't be written to; ,overlay=FILE:\n" \
	"                          that is kept in FILE; ,writable: the image is changed;\n"       \
	"                          ,serial=TEXT: its serial number; may be repeated\n"             \
	"      --writable          change an IMAGE that is a disk\n"

/* Part of struct run_options. */
struct run_disk_options {
	const char *text[VM_MAX_DISKS]; /* as given; one place is left for IMAGE */
	unsigned int n;
	bool writable; /* --writable */
};

/* One --disk, taken apart. */
struct run_disk {
	char path[PATH_MAX], overlay[PATH_MAX];
	char serial[VIRTIO_BLK_ID_LEN + 1];
	enum disk_write write;
};

/* -EINVAL with what is wrong. */
int run_disk_parse(struct run_disk *out, const char *text, struct err *e);

struct run_options;
/* One of the options above. -1 to go on, or the exit status. */
int run_options_take_disk(struct run_options *o, int opt, const char *arg);

/* The disks of a run, open: those of --disk behind what was added before. */
struct run_disks {
	struct vm_disk at[VM_MAX_DISKS];
	char serial[VM_MAX_DISKS][VIRTIO_BLK_ID_LEN + 1];
	unsigned int n;
};

/* The next one of the guest; serial may be NULL. */
int run_disks_add(struct run_disks *d, const struct disk_config *cfg, const char *serial,
		  struct err *e);
int run_disks_open(struct run_disks *d, const struct run_disk_options *o, struct err *e);
/* Behind those that the machine's configuration has; it borrows them. */
void run_disks_configure(const struct run_disks *d, struct vm_config *cfg);
void run_disks_close(struct run_disks *d); /* after vm_destroy() */

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_image: what IMAGE turns out to be: a kernel, perhaps with its RAM disk and command line
 * in the same file, or a disk with one on it.
 */
#ifndef KVMPROF_PROFILE_RUN_IMAGE_H
#define KVMPROF_PROFILE_RUN_IMAGE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "vmm/bootdisk/bootdisk.h"
#include "vmm/bootdisk/image_kind.h"
#include "vmm/bootdisk/osrel.h"
#include "profile/options/options.h"
#include "profile/options/disk.h"
#include "profile/live/target.h"
#include "vmm/boot/uki.h"
#include "vmm/dev/disk.h"

/* All zero: no disk. */
struct run_image {
	struct disk *disk;	/* the guest's first, of its run_disks; NULL: IMAGE is a kernel */
	struct diskboot boot;	/* what is on it */
	struct buf kernel_name; /* "debian.img:/boot/vmlinuz-6.1", or "" */
	struct buf map_name;	/* of a System.map on it, the same way */
	struct buf cmdline;	/* of the disk's entry or the unified kernel image; "" none */
	struct buf note;	/* what was changed in it */
	struct buf why;		/* what chose the kernel */
	bool is_uki;		/* the kernel, on a disk or not, is in a unified kernel image */
	struct uki uki;		/* then: where things are in it */
	/* Then, terminated: its .cmdline and .uname; the name in .osrel. "": there is none. */
	struct buf uki_cmdline, uki_release;
	char uki_os[OSREL_MAX_VALUE];
};

/* The first bytes of a file that may become a guest, and what they say. -EISDIR and the like. */
int run_image_look(const char *path, struct image_what *what, struct err *e);

/*
 * Open what o names, with its kernel as *t and its RAM disk as *initrd (none: left alone).
 * A disk becomes the first of *disks. r is zero and stays where it is; t borrows from it.
 */
int run_image_open(struct run_image *r, const struct run_options *o, struct run_disks *disks,
		   struct target *t, struct file_map *initrd, struct err *e);
/*
 * initrd with its zstd parts unpacked (initrd.h), what the guest's kernel would be at for
 * minutes where it is interpreted. None, or nothing to unpack: left alone. -ENOMEM.
 */
int run_image_unpack(struct file_map *initrd, struct err *e);
/* Before the disks are closed. */
void run_image_close(struct run_image *r);

#endif

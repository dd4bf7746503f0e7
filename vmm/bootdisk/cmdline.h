/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * diskboot_cmdline: the kernel's command line of a boot entry, made to fit the machine
 * that it gets here. Pure functions over text.
 *
 * Source of the forms of root=: Linux init/do_mounts.c, name_to_dev_t() (without an
 * initrd the kernel knows PARTUUID=, PARTLABEL=, /dev/NAME and numbers, but no UUID= or
 * LABEL= of file systems).
 */
#ifndef KVMPROF_VMM_BOOTDISK_CMDLINE_H
#define KVMPROF_VMM_BOOTDISK_CMDLINE_H

#include "base/buf.h"
#include "vmm/bootdisk/layout.h"

#include <stdbool.h>

struct diskboot_root {
	const struct disk_layout *layout;
	const struct disk_part *found; /* with an init; NULL: none has */
	bool initrd;		       /* there is one, which knows UUIDs */
	const char *given;	       /* --root: goes into root= as it is; NULL: none */
	const char *name;	       /* of the disk in the guest: "/dev/vda", "/dev/pmem0" */
};

/*
 * options with a root= that this machine can find, terminated; what was changed in it, as
 * a sentence without its end, into *note ("": nothing was).
 */
void diskboot_cmdline(const char *options, const struct diskboot_root *r, struct buf *out,
		      struct buf *note);

/* The value of the last word KEY=... (len bytes), NULL: there is none. key without "=". */
const char *diskboot_word(const char *options, const char *key, size_t *len);

/* The part that a root= names, NULL: not one of this disk. */
const struct disk_part *diskboot_root_part(const struct disk_layout *l, const char *root,
					   size_t len);

#endif

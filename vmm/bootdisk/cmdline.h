/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * diskboot_cmdline: adapts the kernel's command line of a boot entry to the virtual machine. Pure
 * functions over text; any thread.
 *
 * Source of the forms of root=: Linux init/do_mounts.c, name_to_dev_t() (without an initrd the
 * kernel knows PARTUUID=, PARTLABEL=, /dev/NAME and numbers, but not the UUID= or LABEL= of file
 * systems).
 */
#ifndef KVMPROF_VMM_BOOTDISK_CMDLINE_H
#define KVMPROF_VMM_BOOTDISK_CMDLINE_H

#include "base/buf.h"
#include "vmm/bootdisk/layout.h"

#include <stdbool.h>

struct diskboot_root {
	const struct disk_layout *layout;
	const struct disk_part *found; /* partition with an init; NULL: none */
	bool initrd;		       /* an initrd is used, which knows UUIDs */
	const char *given;	       /* --root, copied into root= unchanged; NULL: not given */
	const char *name;	       /* the disk's name in the guest: "/dev/vda", "/dev/pmem0" */
};

/*
 * Appends options to *out, with a NUL and with a root= that this machine can find. Appends to
 * *note a description of what was changed, a sentence without its end; nothing if nothing was.
 */
void diskboot_cmdline(const char *options, const struct diskboot_root *r, struct buf *out,
		      struct buf *note);

/*
 * Returns the value of the last word KEY=... in options, and its length in *len, or NULL if there
 * is none. key is without "=".
 */
const char *diskboot_word(const char *options, const char *key, size_t *len);

/* Returns the partition of this disk that a root= value names, or NULL. */
const struct disk_part *diskboot_root_part(const struct disk_layout *l, const char *root,
					   size_t len);

#endif

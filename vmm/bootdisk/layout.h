/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * disk_layout: partitions and file systems of a raw disk image, through libblkid.
 */
#ifndef KVMPROF_VMM_BOOTDISK_LAYOUT_H
#define KVMPROF_VMM_BOOTDISK_LAYOUT_H

#include "base/err.h"

#include <stdint.h>

#define DISK_LAYOUT_MAX_PARTS 128u
#define DISK_LAYOUT_TEXT 64u

struct disk_part {
	unsigned int number;	     /* as in /dev/vda1; 0: the whole disk */
	uint64_t off, len;	     /* bytes in the image */
	char name[DISK_LAYOUT_TEXT]; /* GPT's, or ""; as all texts here: may hold anything */
	char partuuid[DISK_LAYOUT_TEXT];
	char type[DISK_LAYOUT_TEXT]; /* GPT: a GUID; MBR: 0x83 */
	char fs[DISK_LAYOUT_TEXT];   /* "ext4", "vfat", "swap", ...; "" unknown */
	char label[DISK_LAYOUT_TEXT];
	char uuid[DISK_LAYOUT_TEXT];
};

struct disk_layout {
	char table[DISK_LAYOUT_TEXT]; /* "gpt", "dos", ...; "": none, part[0] is the whole disk */
	struct disk_part part[DISK_LAYOUT_MAX_PARTS];
	unsigned int n;
	unsigned int left_out; /* partitions that found no room, or lie outside of the image */
};

/* path is opened for reading only. -EINVAL: neither partitions nor a file system. */
int layout_read(struct disk_layout *l, const char *path, struct err *e);

#endif

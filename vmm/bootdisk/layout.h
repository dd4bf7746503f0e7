/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * disk_layout: finds the partitions and file systems of a raw disk image with libblkid. Only the
 * main thread reads disks.
 */
#ifndef KVMPROF_VMM_BOOTDISK_LAYOUT_H
#define KVMPROF_VMM_BOOTDISK_LAYOUT_H

#include "base/err.h"

#include <stdint.h>

#define DISK_LAYOUT_MAX_PARTS 128u
#define DISK_LAYOUT_TEXT 64u

/* A partition, or the whole disk. Texts come from the disk and may contain anything. */
struct disk_part {
	unsigned int number;	     /* as in /dev/vda1; 0: the whole disk */
	uint64_t off, len;	     /* bytes, within the image */
	char name[DISK_LAYOUT_TEXT]; /* GPT's name, or "" */
	char partuuid[DISK_LAYOUT_TEXT];
	char type[DISK_LAYOUT_TEXT]; /* GPT: a GUID; MBR: such as 0x83 */
	char fs[DISK_LAYOUT_TEXT];   /* "ext4", "vfat", "swap", ...; "": unknown */
	char label[DISK_LAYOUT_TEXT];
	char uuid[DISK_LAYOUT_TEXT];
};

struct disk_layout {
	/* "gpt", "dos", ...; "": no table, part[0] is the whole disk. */
	char table[DISK_LAYOUT_TEXT];
	struct disk_part part[DISK_LAYOUT_MAX_PARTS];
	unsigned int n;
	unsigned int left_out; /* partitions beyond the limit, or outside of the image */
};

struct disk_reader;

/*
 * Reads the layout of the image at path, which is opened read-only. If disk->size is not 0, it is
 * only named by path, and read through *disk. Returns 0; -EINVAL if it has
 * neither partitions nor a file system; -ENOENT if libblkid is not installed; or another -errno,
 * with *e set. *l owns nothing.
 */
int layout_read(struct disk_layout *l, const struct disk_reader *disk, const char *path,
		struct err *e);

#endif

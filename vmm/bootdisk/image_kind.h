/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * image_kind: classifies a file that is to be booted by its first bytes.
 *
 * It distinguishes kernels, disks and files that are neither. image_parse() (vmm/image/image.h)
 * decides whether a kernel is valid, and explains what else a file is that cannot be booted;
 * diskboot examines the contents of a disk. Pure function; any thread.
 */
#ifndef KVMPROF_VMM_BOOTDISK_IMAGE_KIND_H
#define KVMPROF_VMM_BOOTDISK_IMAGE_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Bytes from the beginning that are sufficient (the farthest magic is that of btrfs, at 0x10040).
 */
#define IMAGE_HEAD (128u << 10)

enum image_kind {
	IMAGE_KERNEL = 1, /* for image_parse(), which may reject it */
	IMAGE_DISK,	  /* a raw disk: partitions, or a file system from its first byte */
	IMAGE_FORMAT,	  /* a disk in another format, which disk_open() rejects */
	IMAGE_ISO,	  /* a CD */
	IMAGE_INITRD,	  /* a cpio archive, perhaps compressed */
};

struct image_what {
	enum image_kind kind;
	const char *name;   /* "a disk image with a GUID partition table"; static */
	const char *advice; /* advice for kinds that are not booted, else NULL; static */
};

/* Returns the kind of a file. n is IMAGE_HEAD, or the length of a shorter file. */
struct image_what image_kind(const uint8_t *head, size_t n);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * image_kind: what a file is that somebody wants to boot, by its first bytes.
 *
 * It tells kernels from disks and from what is neither. Whether a kernel is good is
 * image_parse()'s to say (vmm/image/image.h), and so is what else a file may be that
 * can't be booted; what is on a disk is diskboot's.
 */
#ifndef KVMPROF_VMM_BOOTDISK_IMAGE_KIND_H
#define KVMPROF_VMM_BOOTDISK_IMAGE_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* That many bytes from the beginning tell (the farthest: btrfs at 0x10040). */
#define IMAGE_HEAD (128u << 10)

enum image_kind {
	IMAGE_KERNEL = 1, /* for image_parse(), also to be refused by it */
	IMAGE_DISK,	  /* raw: partitions, or a file system from its first byte on */
	IMAGE_FORMAT,	  /* a disk in another format than raw, which disk_open() refuses */
	IMAGE_ISO,	  /* a CD */
	IMAGE_INITRD,	  /* a cpio archive, perhaps compressed */
};

struct image_what {
	enum image_kind kind;
	const char *name;   /* "a disk image with a GUID partition table"; static */
	const char *advice; /* kinds that are not booted: what to do; static; else NULL */
};

/* n is IMAGE_HEAD, or all bytes of a shorter file. */
struct image_what image_kind(const uint8_t *head, size_t n);

#endif

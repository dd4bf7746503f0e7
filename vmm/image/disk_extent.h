/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * disk_extent: finds out whether a disk image is truncated.
 *
 * QEMU reads zeros where a table refers to bytes behind the end of the file, so a download that was cut
 * off would boot a guest that fails somewhere. Sources as in disk_header.h. Pure functions; any thread.
 */
#ifndef KVMPROF_VMM_IMAGE_DISK_EXTENT_H
#define KVMPROF_VMM_IMAGE_DISK_EXTENT_H

#include <stddef.h>
#include <stdint.h>

/* Reads all of dst from byte off of the file; returns 0 or -errno. */
struct disk_extent_file {
	int (*read)(void *ctx, uint64_t off, void *dst, size_t len);
	void *ctx;
	uint64_t size; /* bytes of the file */
};

/*
 * Returns the offset of the first byte that the tables of an image of a format of disk_format_name()
 * refer to and that is not in the file, or 0: there is none, or the format is not examined. Reads the
 * tables of a qcow2, vmdk or vdi image, about 1/8000 of what it holds.
 */
uint64_t disk_extent_missing(const struct disk_extent_file *f, const char *format);

#endif

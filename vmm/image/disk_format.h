/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * disk_format: recognises compressed disk images, and formats other than raw, by their first bytes.
 *
 * Sources: QEMU docs/interop/qcow2.rst and qed_spec.rst; VMware "Virtual Disk Format 1.1"; MS-VHDX
 * 2.2.1; Microsoft "Virtual Hard Disk Image Format" (a dynamic disk's copy of the footer);
 * VirtualBox src/VBox/Storage/VDICore.h (VDI_IMAGE_SIGNATURE); RFC 1952, 8878; xz and LZ4 frame format
 * specifications. Pure functions; any thread.
 */
#ifndef KVMPROF_VMM_IMAGE_DISK_FORMAT_H
#define KVMPROF_VMM_IMAGE_DISK_FORMAT_H

#include <stddef.h>
#include <stdint.h>

/* Bytes from the beginning of the image that are sufficient to recognise it. */
#define DISK_FORMAT_HEAD 512u

/* Returns qemu-img's name of the format (static text), or NULL if it may be a raw disk. */
const char *disk_format_name(const uint8_t *head, size_t len);

/* Returns the name that disk_format_name() has for the format (static text), or NULL. */
const char *disk_format_find(const char *name);

struct disk_compression {
	const char *program; /* unpacks with -dc; also the name of the compression */
	const char *package; /* Debian's package that has it */
};

/* Returns the compression that the file begins with (static), or NULL if there is none. */
const struct disk_compression *disk_format_compression(const uint8_t *head, size_t len);

#endif

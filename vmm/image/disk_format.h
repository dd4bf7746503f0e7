/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * disk_format: disk images that are not the disk's bytes, by their first bytes.
 *
 * Sources: QEMU docs/interop/qcow2.rst and qed_spec.rst; VMware "Virtual Disk Format 1.1";
 * MS-VHDX 2.2.1; Microsoft "Virtual Hard Disk Image Format" (a dynamic disk's copy of the
 * footer); VirtualBox src/VBox/Storage/VDICore.h (VDI_IMAGE_SIGNATURE).
 */
#ifndef KVMPROF_VMM_IMAGE_DISK_FORMAT_H
#define KVMPROF_VMM_IMAGE_DISK_FORMAT_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* Bytes from the beginning of the image that tell. */
#define DISK_FORMAT_HEAD 512u

/* What qemu-img calls the format, or NULL: it may be a raw disk. */
const char *disk_format_name(const uint8_t *head, size_t len);

/* -ENOTSUP, and in e the command that makes a raw image of it; 0 when there is no need. */
int disk_format_refuse(const char *path, const uint8_t *head, size_t len, struct err *e);

#endif

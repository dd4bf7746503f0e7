/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * disk_format: recognises disk image formats other than raw by their first bytes.
 *
 * Sources: QEMU docs/interop/qcow2.rst and qed_spec.rst; VMware "Virtual Disk Format 1.1"; MS-VHDX
 * 2.2.1; Microsoft "Virtual Hard Disk Image Format" (a dynamic disk's copy of the footer);
 * VirtualBox src/VBox/Storage/VDICore.h (VDI_IMAGE_SIGNATURE). Pure functions; any thread.
 */
#ifndef KVMPROF_VMM_IMAGE_DISK_FORMAT_H
#define KVMPROF_VMM_IMAGE_DISK_FORMAT_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* Bytes from the beginning of the image that are sufficient to recognise it. */
#define DISK_FORMAT_HEAD 512u

/* Returns qemu-img's name of the format (static text), or NULL if it may be a raw disk. */
const char *disk_format_name(const uint8_t *head, size_t len);

/*
 * Returns 0 if the image may be raw. Otherwise returns -ENOTSUP and sets *e to a message with the
 * command that converts it.
 */
int disk_format_refuse(const char *path, const uint8_t *head, size_t len, struct err *e);

#endif

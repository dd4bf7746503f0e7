/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * disk_header: reads from a disk image's header whether it is encrypted, and which other files it
 * refers to.
 *
 * An image from somebody else may name any file of this host as its backing file, so nothing is
 * opened here: the caller decides. Sources: QEMU docs/interop/qcow2.rst and qed_spec.rst; VMware
 * "Virtual Disk Format 1.1"; Microsoft "Virtual Hard Disk Image Format"; VirtualBox
 * include/VBox/vd.h (VDIIMAGETYPE). Pure functions; any thread.
 */
#ifndef KVMPROF_VMM_IMAGE_DISK_HEADER_H
#define KVMPROF_VMM_IMAGE_DISK_HEADER_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* Bytes from the beginning of the image that are sufficient. */
#define DISK_HEADER_MAX (1u << 20)
#define DISK_HEADER_NAME 1024u /* bytes of a name with its NUL (qcow2: at most 1,023) */

/* Names come from the image and may contain anything; "": none. */
struct disk_header {
	const char *encryption;		/* "LUKS", "AES", "VMware's"; NULL: not encrypted */
	char backing[DISK_HEADER_NAME]; /* the image below this one */
	char backing_format[16];
	char data[DISK_HEADER_NAME]; /* qcow2: the file that has the data */
	/* Why the image is not complete by itself in a way that is not followed; NULL: it is. */
	const char *part_of;
};

/*
 * Parses the first len bytes, at most DISK_HEADER_MAX, of an image of a format of disk_format_name().
 * name is for messages. Returns 0, or -EINVAL with *e recorded if the header is damaged or truncated.
 */
int disk_header_parse(struct disk_header *h, const char *name, const char *format,
		      const uint8_t *head, size_t len, struct err *e);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * disk_state: an overlay as bytes of a snapshot.
 *
 * 	u8  magic[8]	"kvmp-dov"
 * 	u32 version	1
 * 	u32 0
 * 	u64 size, stamp	of the image, as in disk_overlay.h
 * 	records		u64 kind, offset, length (whole sectors, ascending, apart), and
 * 			kind 1 (data): that many bytes follow; 2: zeros; 0: the end, without
 * 			offset and length
 */
#ifndef KVMPROF_VMM_DEV_DISK_STATE_H
#define KVMPROF_VMM_DEV_DISK_STATE_H

#include "base/cursor.h"
#include "base/err.h"
#include "vmm/dev/disk_overlay.h"

/*
 * Writes the contents of the overlay at fd's position. o NULL is a read-only disk. `name` is for
 * messages. Returns 0, or -errno with *e recorded. No request may be in flight.
 */
int disk_state_save(const struct disk_overlay *o, const char *name, uint64_t size, uint64_t stamp,
		    int fd, struct err *e);
/*
 * Replaces the contents of the overlay by saved ones. Returns 0, or -errno with *e recorded:
 * -EINVAL (damaged, another image size, or data for a read-only disk), -ESTALE (the image was
 * changed), -ENOSPC.
 */
int disk_state_restore(struct disk_overlay *o, const char *name, uint64_t size, uint64_t stamp,
		       struct cursor *in, struct err *e);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * snapshot: a stopped machine as a file, and a machine out of such a file.
 *
 * A file of sections, each with a name, a version, a length and a checksum; those that
 * a machine needs and those that the file has must be the same. RAM comes last, sparse and
 * page-aligned, so that it is mapped copy-on-write: as many machines as wanted start
 * from one file, which is never changed.
 */
#ifndef KVMPROF_VMM_SNAPSHOT_H
#define KVMPROF_VMM_SNAPSHOT_H

#include "base/buf.h"
#include "base/cursor.h"
#include "base/err.h"

#include <stdint.h>

#define SNAPSHOT_MAX_SECTIONS 256u
#define SNAPSHOT_MAX_SECTION (64u << 20) /* bytes, but for RAM and overlays */

struct vm;

/* Every part of the machine has such a pair; `what` is struct vm, struct vcpu or a device. */
struct snapshot_part {
	const char *name; /* of the section: "serial", "vcpu", "virtio" ... */
	uint32_t version; /* of its bytes */
	int (*save)(void *what, struct buf *out, struct err *e);
	int (*restore)(void *what, struct cursor *in, struct err *e);
};

#endif
